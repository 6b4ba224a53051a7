#!/bin/sh
# retry_storm.sh - an export that fails half way, and a queue that starts it five times over.
#
# The network had a moment, the job died, and the retry system did what it is there for, and more: five new
# jobs for the same export, each with a number of its own. Each exports everything again.
#
# The jobs differ in their numbers only. What they ask for is the same, so the key is made of that: the
# content of the job, without its number. The whole of it is the two lines `key` and `exclude` below.
#
#   examples/retry_storm.sh            first without hapax, then with it
set -eu

folder=$(mktemp -d)
pids=
trap 'for pid in $pids; do kill $pid; wait $pid; done 2>/dev/null; rm -rf "$folder"' EXIT

# start LOG COMMAND...: in the background, until LOG says that it is ready.
start() {
	log=$1
	shift
	: >"$log"
	"$@" 2>"$log" &
	pids="$! $pids"
	until grep -q ready "$log"; do
		kill -0 $! 2>/dev/null || { cat "$log" >&2 && exit 1; }
		sleep 0.05
	done
}

# The exporter takes a while, and fails the first time it is asked: that is the moment of the network.
start "$folder/naked" hapax demo-upstream --listen 127.0.0.1:0 --delay 100ms --fail-first 1
start "$folder/behind" hapax demo-upstream --listen 127.0.0.1:0 --delay 100ms --fail-first 1
naked=$(sed -n 's/.*ready on //p' "$folder/naked")
behind=$(sed -n 's/.*ready on //p' "$folder/behind")

# A duplicate waits for the run in progress, instead of getting 409.
#
# Where the jobs come by Kafka, the daemon takes them itself; key and exclude are the same:
#   consumers:
#   - {name: exports, from: "kafka://localhost/jobs?group=exports", exec: ./export, key: content, exclude: [data.job]}
cat >"$folder/hapax.yaml" <<YAML
defaults: {wait: 10s}
gateway:
  routes:
  - upstream: http://$behind
    key: content
    exclude: [data.job]
YAML
start "$folder/hapax" hapax serve --config "$folder/hapax.yaml" --store "file:$folder/store" \
	--gateway 127.0.0.1:0 --admin off
gateway=$(sed -n 's/.*gateway"*[=:] *"*\([0-9.:]*\).*/\1/p' "$folder/hapax" | head -n 1)

# job WHERE NUMBER DATASET: what the queue sends. Prints the status.
job() {
	curl -s -o "$folder/body-$2" -w '%{http_code}\n' "http://$1/" \
		-H 'ce-specversion: 1.0' -H 'ce-type: export.wanted' -H 'ce-source: /queue' -H "ce-id: $2" \
		-H 'Content-Type: application/json' -d "{\"job\":$2,\"dataset\":\"$3\",\"rows\":1000000}"
}

# The retry system: five jobs at the same moment.
storm() {
	jobs=
	: >"$folder/answers"
	for number in 2 3 4 5 6; do
		job "$1" $number "$2" >>"$folder/answers" &
		jobs="$jobs $!"
	done
	# shellcheck disable=SC2086
	wait $jobs
	echo "five retries: $(paste -s -d ' ' "$folder/answers")"
}

exported() {
	echo "exported $(curl -s "http://$1/count" | sed 's/.*"executed":\([0-9]*\).*/\1/') time(s)"
}

echo '== without hapax: the job fails, and five retries export everything five times'
job "$naked" 1 customers
storm "$naked" customers
exported "$naked"

echo '== through hapax: the job fails, one of the five runs, the others get what it says'
job "$gateway" 1 customers
storm "$gateway" customers
exported "$behind"

echo '== a straggler, long after: nothing runs'
job "$gateway" 7 customers
exported "$behind"

echo '== another export is another key'
job "$gateway" 8 orders
exported "$behind"
