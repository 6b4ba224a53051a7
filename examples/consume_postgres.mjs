// consume_postgres.mjs - an event whose effect happens once, from Node (npm install pg).
//
//   hapax store migrate postgres://localhost/shop
//   node consume_postgres.mjs postgres://localhost/shop order-17
//
// Run it twice, or twice at the same time: there is one payment.
import pg from 'pg';

const [url, key] = process.argv.slice(2);
const client = new pg.Client(url);
await client.connect();

// handler(client) runs in the transaction of claim and completion; its result is kept for duplicates.
export async function once(client, key, handler) {
	await client.query('BEGIN');
	try {
		const claim = (await client.query('SELECT outcome, token, body FROM hapax_claim($1)', [key])).rows[0];
		let result = claim.body;
		if (claim.outcome === 'acquired') {
			result = Buffer.from(JSON.stringify(await handler(client)));
			await client.query('SELECT hapax_complete($1, $2, $3)', [key, claim.token, result]);
		} else if (claim.outcome !== 'replay') {
			throw new Error(`${key} is ${claim.outcome}`);
		}
		await client.query('COMMIT');
		return { outcome: claim.outcome, result: JSON.parse(result) };
	} catch (error) {
		await client.query('ROLLBACK');
		throw error;
	}
}

await client.query("SET hapax.tenant = 'shop'");
await client.query('CREATE TABLE IF NOT EXISTS payment (order_id text NOT NULL, cents integer NOT NULL)');
const answer = await once(client, key, async (client) => {
	await client.query('INSERT INTO payment VALUES ($1, 4999)', [key]);
	return { receipt: 4711 };
});
console.log(answer.outcome, JSON.stringify(answer.result));
await client.end();
