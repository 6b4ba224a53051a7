#!/bin/sh
# repeated_webhook.sh - a payment provider that sends its webhook again, and again.
#
# Senders of webhooks repeat until they get a 2xx, and often beyond: because the answer was slow, because
# it was lost, because a person pressed "resend". The order must be shipped once.
#
# The service behind knows nothing of all that. hapax stands in front of it; source and id of the event
# say that it is the same one.
#
#   examples/repeated_webhook.sh       a first delivery, repeats, a crowd, a service that fails
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

# The service takes a while, and fails the first time it is asked at all.
start "$folder/service" hapax demo-upstream --listen 127.0.0.1:0 --delay 100ms --fail-first 1
service=$(sed -n 's/.*ready on //p' "$folder/service")
start "$folder/hapax" hapax serve --store "file:$folder/store" --upstream "http://$service" \
	--gateway 127.0.0.1:0 --admin off
gateway=$(sed -n 's/.*gateway"*[=:] *"*\([0-9.:]*\).*/\1/p' "$folder/hapax" | head -n 1)

# What the provider sends. Prints the status, and what hapax decided.
deliver() {
	curl -s -o "$folder/body" -D - "http://$gateway/webhooks/payments" \
		-H 'ce-specversion: 1.0' -H 'ce-type: payment.succeeded' -H 'ce-source: /provider' \
		-H "ce-id: $1" -H 'Content-Type: application/json' -d '{"order":17,"total":42}' |
		tr -d '\r' | sed -n 's/^HTTP.1.1 \([0-9]*\).*/\1/p; s/^Hapax-Decision: //p' | paste -s -d ' '
}

executed() {
	echo "the service ran it $(curl -s "http://$service/count" | sed 's/.*"executed":\([0-9]*\).*/\1/') time(s)"
}

echo '== the service fails: nothing is stored, and the provider retries'
deliver evt_1
executed

echo '== the retry: this time it runs'
deliver evt_1
executed

echo '== and again, because the answer was lost on the way, and by hand an hour later'
deliver evt_1
deliver evt_1
executed

echo '== ten deliveries of the next event at once: one runs, the others get its reply or 409'
number=0
crowd=
while [ $number -lt 10 ]; do
	curl -s -o /dev/null -w '%{http_code}\n' "http://$gateway/webhooks/payments" \
		-H 'ce-specversion: 1.0' -H 'ce-type: payment.succeeded' -H 'ce-source: /provider' \
		-H 'ce-id: evt_2' -H 'Content-Type: application/json' -d '{"order":18,"total":7}' >>"$folder/crowd" &
	crowd="$crowd $!"
	number=$((number + 1))
done
# shellcheck disable=SC2086
wait $crowd
echo "answers: $(sort -u "$folder/crowd" | paste -s -d " ")"
executed
