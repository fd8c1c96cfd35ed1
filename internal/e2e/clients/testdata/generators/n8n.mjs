// Builds the properties of the generic OpenAPI node of n8n.
import { readFileSync } from "node:fs";
import node from "@devlikeapro/n8n-openapi-node";

const document = JSON.parse(readFileSync("openapi.json", "utf8"));
const properties = new node.N8NPropertiesBuilder(document, {}).build();
const operations = properties.filter((p) => p.name === "operation").flatMap((p) => p.options);
console.log(`${operations.length} operations, ${properties.length} properties`);
const text = operations.find((o) => o.routing?.request?.url === "=/api/send-message/text");
if (!text || text.routing.request.method !== "POST") throw new Error("there is no operation that sends a text");
for (const field of ["contact_id", "message"]) {
  const found = properties.some((p) => p.name === field && p.displayOptions?.show?.operation?.includes(text.value));
  if (!found) throw new Error(`a text has no ${field}`);
}
