-- offset.sql - how far a consumer is done, next to its effects (HAPAX_CONSUMER_TRANSACTIONS in
-- hapax/source.h).
--
-- Every message of a partition below `next` is done. The offset commits with an effect, so it is
-- never ahead of the effects; it may lag behind. Groups and topics are the broker's: no tenant owns
-- a row.

CREATE TABLE IF NOT EXISTS @@hapax_offset (
	grp text NOT NULL,
	topic text NOT NULL,
	part integer NOT NULL,
	next bigint NOT NULL,
	PRIMARY KEY (grp, topic, part)
) WITH (fillfactor = 50);

-- If the row is locked, leave it unchanged: another transaction is about to commit an offset that
-- is just as valid, and commits of one partition need not wait for each other.
CREATE OR REPLACE FUNCTION @@hapax_offset_set(p_group text, p_topic text, p_part integer,
	p_next bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
	PERFORM 1 FROM @@hapax_offset WHERE grp = p_group AND topic = p_topic AND part = p_part
		FOR UPDATE SKIP LOCKED;
	IF FOUND THEN
		UPDATE @@hapax_offset SET next = p_next
			WHERE grp = p_group AND topic = p_topic AND part = p_part
				AND next <> p_next;
	ELSIF NOT EXISTS (SELECT 1 FROM @@hapax_offset WHERE grp = p_group AND topic = p_topic
		AND part = p_part) THEN
		INSERT INTO @@hapax_offset VALUES (p_group, p_topic, p_part, p_next)
			ON CONFLICT DO NOTHING;
	END IF;
END
$$;
