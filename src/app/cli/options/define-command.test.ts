import { expect, it } from "vitest";
import { Reporter } from "../reporter.js";
import { defineCommand } from "./define-command.js";

it("handles interrupts until the command ends, also by an error", async () => {
  const listeners = () => ["SIGINT", "SIGTERM"].map((signal) => process.listenerCount(signal));
  const before = listeners();
  const during: number[][] = [];
  const command = defineCommand({
    name: "test",
    description: "Handles interrupts.",
    options: {},
    run: async (_values, reporter) => {
      reporter.handleInterrupts();
      during.push(listeners());
      if (during.length % 2 === 0) throw new Error("failed");
      return 0;
    },
  });
  for (let i = 0; i < 20; i++) await command.run([], new Reporter()).catch(() => {});
  expect(during).toEqual(Array.from({ length: 20 }, () => before.map((count) => count + 1)));
  expect(listeners()).toEqual(before);
});
