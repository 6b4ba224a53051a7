-- stats.lua - {now, token, bytes, claimed, done, failed, parked, due}.
return {text(now), text(token), text(bytes), text(counts.claimed), text(counts.done),
	text(counts.failed), text(counts.parked), call('ZCOUNT', KEYS[2], '-inf', text(now))}
