#!/bin/sh
# double_payment.sh - a customer who presses "pay" twice.
#
# The page was slow, so the button was pressed again; the phone lost its connection, so the app sent the
# request again. All of them carry the Idempotency-Key that the app made when the page was opened.
#
# The payment service does not look at it, and charges whatever comes. hapax stands in front of it.
#
#   examples/double_payment.sh         first without hapax, then with it
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

start "$folder/service" hapax demo-upstream --listen 127.0.0.1:0 --delay 100ms
service=$(sed -n 's/.*ready on //p' "$folder/service")
start "$folder/hapax" hapax serve --store "file:$folder/store" --upstream "http://$service" \
	--proxy 127.0.0.1:0 --gateway off --admin off
proxy=$(sed -n 's/.*proxy"*[=:] *"*\([0-9.:]*\).*/\1/p' "$folder/hapax" | head -n 1)

# pay WHERE KEY AMOUNT [CLICK]: prints the status, whether it was a replay, and the receipt or the problem.
pay() {
	answer="$folder/answer${4-}"
	curl -s -D "$answer.head" "http://$1/v1/charges" -H 'Authorization: Bearer customer-7' \
		-H "Idempotency-Key: $2" -H 'Content-Type: application/json' -d "{\"amount\":$3}" >"$answer.body"
	tr -d '\r' <"$answer.head" |
		sed -n 's/^HTTP.1.1 \([0-9]*\).*/\1/p; s/^Idempotent-Replayed: true/replayed/p' | paste -s -d ' ' | tr '\n' ' '
	sed 's/.*"title":"\([^"]*\)".*/\1/' "$answer.body"
}

# The button, twice at the same moment.
press_twice() {
	pay "$@" 1 >"$folder/first" &
	click=$!
	pay "$@" 2 >"$folder/second"
	wait $click
	sort "$folder/first" "$folder/second"
}

charged() {
	echo "charged $(curl -s "http://$service/count" | sed 's/.*"executed":\([0-9]*\).*/\1/') time(s)"
}

echo '== without hapax: two clicks, two charges'
press_twice "$service" order-17 42
charged

echo '== through hapax: two clicks, one charge; the second waits, and gets the same receipt'
press_twice "$proxy" order-18 42
charged

echo '== the phone sends it again an hour later: the receipt, and no charge'
pay "$proxy" order-18 42
charged

echo '== the same key for another amount is a mistake of the app, and is told so'
pay "$proxy" order-18 99
charged

echo '== the next order is charged'
pay "$proxy" order-19 42
charged
