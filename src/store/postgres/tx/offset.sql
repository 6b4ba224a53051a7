-- offset.sql - up to where a consumer is done, beside what it did (HAPAX_CONSUMER_TRANSACTIONS in hapax/source.h).
--
-- Below `next` all of a partition is done. It commits with an effect, so it is never ahead of them; it may lag behind.
-- Groups and topics are the broker's: no tenant owns a row.

CREATE TABLE IF NOT EXISTS @@hapax_offset (
	grp text NOT NULL,
	topic text NOT NULL,
	part integer NOT NULL,
	next bigint NOT NULL,
	PRIMARY KEY (grp, topic, part)
) WITH (fillfactor = 50);

-- Who finds the row locked leaves it as it is: another transaction is about to commit a mark that is as true, and
-- commits of one partition need not wait for each other.
CREATE OR REPLACE FUNCTION @@hapax_offset_set(p_group text, p_topic text, p_part integer, p_next bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM @@hapax_offset WHERE grp = p_group AND topic = p_topic AND part = p_part FOR UPDATE SKIP LOCKED;
	IF FOUND THEN
		UPDATE @@hapax_offset SET next = p_next
			WHERE grp = p_group AND topic = p_topic AND part = p_part AND next <> p_next;
	ELSIF NOT EXISTS (SELECT 1 FROM @@hapax_offset WHERE grp = p_group AND topic = p_topic AND part = p_part) THEN
		INSERT INTO @@hapax_offset VALUES (p_group, p_topic, p_part, p_next) ON CONFLICT DO NOTHING;
	END IF;
END
$$;
