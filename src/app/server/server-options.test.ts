import { afterEach, expect, it, vi } from "vitest";
import { readApiKey } from "./server-options.js";

afterEach(() => vi.unstubAllEnvs());

it.each([
  [undefined, undefined],
  ["", undefined],
  ["key", "key"],
])("reads the API key of an environment with %j as %j", (value, key) => {
  vi.stubEnv("LLAMAGYM_API_KEY", value);
  expect(readApiKey()).toBe(key);
});
