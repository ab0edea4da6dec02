import type { Context } from "hono";
import type { z } from "zod";
import { invalidArgument } from "../../core/errors.js";

/** Returns the JSON body of a request. @throws INVALID_ARGUMENT for one of another form. */
export async function parseBody<Value>(c: Context, schema: z.ZodType<Value>): Promise<Value> {
  const given: unknown = await c.req.json().catch(() => undefined);
  const { data, error } = schema.safeParse(given);
  if (error === undefined) return data;
  const [{ path, message }] = error.issues;
  throw invalidArgument(`The request is not valid at ${path.join(".") || "its top"}: ${message}.`);
}
