export function setupRerender(): () => void;
export function act(callback: () => void | Promise<void>): Promise<void>;
export function teardown(): void;
