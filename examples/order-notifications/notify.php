<?php
// Sends a message about each order on stdin, once.
declare(strict_types=1);

const TEXTS = [
    'shipped' => 'Your order %s is on its way.',
    'ready' => 'Your order %s is ready to be picked up.',
];

/** Sends a text, and repeats it while the server asks to. Returns the status of the message, or the code of the error. */
function send(string $contact, string $text, string $key): string
{
    for ($tries = 1; ; $tries++) {
        $answer = @file_get_contents(getenv('PARLEY_URL') . '/api/send-message/text', false, stream_context_create(['http' => [
            'method' => 'POST',
            'header' => ['Authorization: Bearer ' . getenv('PARLEY_TOKEN'), 'Content-Type: application/json', "Idempotency-Key: $key"],
            'content' => json_encode(['contact_id' => $contact, 'message' => $text]),
            'ignore_errors' => true, // errors have a body, too
            'timeout' => 60,
        ]]));
        $headers = $http_response_header ?? [];
        $status = preg_match('{^HTTP/\S+ (\d+)}', $headers[0] ?? '', $found) ? (int) $found[1] : 0; // 0: no connection
        if (!in_array($status, [0, 429, 502, 503, 504], true) || $tries === 5) {
            $body = json_decode((string) $answer, true) ?? [];
            return $body['data']['error']['code'] ?? $body['data']['status'] ?? $body['code'] ?? "http $status";
        }
        $after = implode(preg_grep('{^Retry-After:}i', $headers));
        sleep(min(60, (int) filter_var($after, FILTER_SANITIZE_NUMBER_INT) ?: 2 ** $tries));
    }
}

if (!getenv('PARLEY_URL') || !getenv('PARLEY_TOKEN')) {
    fwrite(STDERR, "PARLEY_URL and PARLEY_TOKEN must be in the environment.\n");
    exit(2);
}
$failed = 0;
while (($line = fgets(STDIN)) !== false) {
    $order = json_decode($line, true);
    if (!isset($order['order'], $order['phone'], TEXTS[$order['status'] ?? ''])) {
        fwrite(STDERR, "not an order: $line");
        $failed++;
        continue;
    }
    $text = sprintf(TEXTS[$order['status']], $order['order']);
    $result = send("{$order['phone']}@c.us", $text, "order-{$order['order']}-{$order['status']}");
    echo "{$order['order']} $result\n";
    $failed += in_array($result, ['PENDING', 'SENT', 'DELIVERED', 'READ'], true) ? 0 : 1;
}
exit($failed > 0 ? 1 : 0);
