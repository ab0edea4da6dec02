import { expect, it } from "vitest";
import { LlamaGymError } from "./errors.js";

it("prints its code and message", () => {
  expect(String(new LlamaGymError("FILE_CORRUPT", "x.safetensors is truncated."))).toBe(
    "LlamaGymError [FILE_CORRUPT]: x.safetensors is truncated.",
  );
});
