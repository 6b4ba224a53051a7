// bad_input.mjs - what the SQL functions refuse, as a program with Node's pg meets it: one line for each, with the
// SQLSTATE that it is told. Nothing of it leaves a record behind, and the connection is of use afterwards.
import pg from 'pg';

const client = new pg.Client(process.argv[2]);
const calls = [
	['SELECT hapax_claim($1)', [null]],
	['SELECT hapax_claim($1)', ['']],
	['SELECT hapax_claim($1, p_ttl => $2)', ['n', '-1 s']],
	['SELECT hapax_claim($1, p_lease => $2)', ['n', '0 s']],
	['SELECT hapax_claim($1, $2)', ['n', Buffer.from('short')]],
	['SELECT hapax_claim($1, p_tenant => $2)', ['n', '*']],
	['SELECT hapax_renew($1, $2, $3)', ['n', 1, null]],
	['SELECT hapax_renew($1, $2, $3)', ['n', 1, '-30 s']],
	['SELECT hapax_complete($1, $2)', ['n', null]],
	['SELECT hapax_complete($1, $2, p_status => $3)', ['n', 1, null]],
	['SELECT hapax_check_all($1)', [null]],
	['SELECT hapax_complete($1, $2)', ['n', 1]],
];

await client.connect();
await client.query("SET hapax.tenant = 'node'");
for (const [text, values] of calls) {
	try {
		await client.query(text, values);
		console.log('accepted', text, JSON.stringify(values));
	} catch (error) {
		console.log(error.code);
	}
}
console.log((await client.query("SELECT count(*) FROM hapax_record WHERE tenant = 'node'")).rows[0].count);
await client.end();
