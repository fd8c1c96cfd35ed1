-- Waiting callbacks are found by their event. They are few among all deliveries.
CREATE INDEX delivery_callback ON delivery (event, endpoint, next_at) WHERE state = 0 AND url <> '';
-- A reset could leave all waiting deliveries of a chat held.
UPDATE delivery SET held = 0 WHERE state = 0 AND held = 1 AND NOT EXISTS
	(SELECT 1 FROM delivery AS earlier WHERE earlier.state = 0 AND earlier.endpoint = delivery.endpoint
	AND earlier.channel = delivery.channel AND earlier.chat = delivery.chat AND earlier.event < delivery.event);
