#!/bin/sh
# overlapping_job.sh - a scheduled job that starts again before it has finished.
#
# cron starts the nightly report on two hosts, or starts it again while last night's still runs, or
# a person starts it by hand beside cron. The report is mailed to customers: once a day, not twice.
#
# The whole of it is the one line in job(): one key for each day, one command.
#
#   examples/overlapping_job.sh        shows three starts at once, then a late one, then a crash
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HAPAX_STORE="sqlite:$folder/jobs.db" folder

# What must happen once. It takes a while and leaves a line for each time it really ran.
cat >"$folder/report" <<'REPORT'
#!/bin/sh
echo "report of $1: writing" >&2
echo $$ >"$folder/pid"
sleep 1
echo "$1" >>"$folder/mailed"
echo "report of $1: mailed"
REPORT
chmod +x "$folder/report"

# This is what stands in the crontab, where % is written \%:
#   0 2 * * *  hapax run --strategy 'template:report-{date:\%F}' --wait -- report
# Here the day is given, so that the example can go through several.
job() {
	hapax run --key "report-$1" --wait --ttl 7d -- "$folder/report" "$1"
}

echo '== three schedulers start the job of the same day at the same moment'
job 2026-11-15 2>/dev/null &
job 2026-11-15 2>/dev/null &
job 2026-11-15 2>/dev/null &
wait
echo "mailed $(wc -l <"$folder/mailed") time(s)"

echo '== a late start, hours after: the output again, and nothing runs'
job 2026-11-15 2>/dev/null
echo "mailed $(wc -l <"$folder/mailed") time(s)"

echo '== the next day is another key'
job 2026-11-16 2>/dev/null
echo "mailed $(wc -l <"$folder/mailed") time(s)"

echo '== the job dies half way, hapax and all: the next start takes over at once'
rm "$folder/pid"
hapax run --key report-2026-11-17 -- "$folder/report" 2026-11-17 >/dev/null 2>&1 &
victim=$!
until [ -s "$folder/pid" ]; do sleep 0.02; done
kill -KILL "$victim" "$(cat "$folder/pid")"
wait "$victim" 2>/dev/null || true
job 2026-11-17 2>/dev/null
echo "mailed $(wc -l <"$folder/mailed") time(s)"

hapax keys --prefix report-
