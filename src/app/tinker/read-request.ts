import type { Context } from "hono";
import type * as z from "zod";
import { MAX_TOKEN_VALUES, readJsonBody } from "../server/read-json-body.js";
import { parseBody } from "../server/wire-format.js";

/** Adds a route whose errors have the form that the SDK shows. */
export type AddRoute = (
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  handler: (context: Context) => Response | object | Promise<Response | object>,
) => void;

/** Reads and checks the JSON of a request. @throws RequestError */
export async function readRequest<Schema extends z.ZodObject>(
  context: Context,
  schema: Schema,
): Promise<z.infer<Schema>> {
  return parseBody(schema, await readJsonBody(context, { maxCommas: MAX_TOKEN_VALUES }));
}
