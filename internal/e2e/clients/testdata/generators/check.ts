// What the programs share: a contact, a picture and a count of what worked.
export const ayu = "6281234567890@c.us";

const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
export const png = new Blob([Buffer.from(dot, "base64")], { type: "image/png" });

// eventually repeats what is asked until it is true: an inbound message takes a moment.
export async function eventually(ask: () => Promise<boolean>): Promise<boolean> {
  for (let tries = 0; tries < 1000; tries++) if (await ask()) return true;
  return false;
}

let done = 0;

export function check(name: string, ok: boolean): void {
  if (!ok) throw new Error(`${name} did not work`);
  console.log(`${++done} ${name}`);
}
