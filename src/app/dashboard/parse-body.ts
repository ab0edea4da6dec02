import type { Context } from "hono";
import type { z } from "zod";
import { invalidArgument } from "../../core/errors.js";
import { describeIssue } from "../../core/schema-issue.js";
import { readJsonBody } from "../server/read-json-body.js";

/** Bytes of a request: notes and conversations have some kB. */
const MAX_BODY_BYTES = 2 ** 20;

/**
 * Returns the JSON body of a request. @throws INVALID_ARGUMENT for one of another form, and as
 * `readJsonBody`.
 */
export async function parseBody<Value>(c: Context, schema: z.ZodType<Value>): Promise<Value> {
  const { data, error } = schema.safeParse(await readJsonBody(c, { maxBytes: MAX_BODY_BYTES }));
  if (error === undefined) return data;
  throw invalidArgument(`The request is invalid: ${describeIssue(error.issues)}.`);
}
