-- Puts a message. Variable: value.
INSERT INTO queue (visible, expires, value)
VALUES (now(), now() + interval '7 days', :value::bytea)
RETURNING id \gset
