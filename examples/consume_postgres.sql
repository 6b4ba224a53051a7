-- consume_postgres.sql - an event whose effect happens once, from any client that speaks SQL.
--
--   hapax store migrate postgres://localhost/shop
--   psql -v ON_ERROR_STOP=1 -d shop -f consume_postgres.sql
--
-- Run it twice, or twice at the same time: there is one payment.

SET client_min_messages = warning;
CREATE TABLE IF NOT EXISTS payment (order_id text NOT NULL, cents integer NOT NULL);
SET hapax.tenant = 'shop';

BEGIN;
-- If another transaction has the key, this call waits until that one has ended.
SELECT outcome, token, convert_from(body, 'UTF8') AS receipt
	FROM hapax_claim('order-17', sha256('{"order": 17, "cents": 4999}')) \gset

SELECT :'outcome' = 'acquired' AS runs \gset
\if :runs
INSERT INTO payment VALUES ('17', 4999);
SELECT hapax_complete('order-17', :token, convert_to('receipt 4711', 'UTF8')) \g /dev/null
\echo charged: receipt 4711
\else
\echo :outcome: :receipt
\endif
COMMIT;
