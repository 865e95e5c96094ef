-- Gets a message, invisible to others for 30 seconds, and deletes it: two transactions.
UPDATE queue SET visible = now() + interval '30 seconds', dequeues = dequeues + 1 WHERE id = (
    SELECT id FROM queue WHERE visible <= now() AND expires > now()
    ORDER BY visible LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING id, dequeues AS got \gset
DELETE FROM queue WHERE id = :id AND dequeues = :got RETURNING id \gset
