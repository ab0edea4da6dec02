import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { withTimeout } from "./with-timeout.js";

const never = () => new Promise<never>(() => {});
const error = () => new Error("too late");

describe("withTimeout", () => {
  it("returns values, and starts no timer for plain ones", async () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    expect(await withTimeout(() => 3, 1, error)).toBe(3);
    expect(setTimer).not.toHaveBeenCalled();
    expect(await withTimeout(async () => 4, 1, error)).toBe(4);
    setTimer.mockRestore();
  });

  it("rethrows the error of a call", async () => {
    const fail = () => {
      throw new Error("broken");
    };
    await expect(withTimeout(fail, 1, error)).rejects.toThrow("broken");
    await expect(withTimeout(async () => fail(), 1, error)).rejects.toThrow("broken");
  });

  it("rejects each call at its own limit, with one timer for all", async () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    const ended: number[] = [];
    const wait = (limit: number) => withTimeout(never, limit, error).catch(() => ended.push(limit));
    await Promise.all([...Array.from({ length: 100 }, () => wait(0.2)), wait(0.05)]);
    expect(ended[0]).toBe(0.05);
    expect(ended).toHaveLength(101);
    expect(setTimer.mock.calls.length).toBeLessThan(10);
    setTimer.mockRestore();
  });

  it("keeps the process alive until a call without a limit settles, and reports one with a limit", () => {
    const path = fileURLToPath(new URL("../../dist/core/with-timeout.js", import.meta.url));
    const run = (promise: string, seconds: number) =>
      spawnSync(process.execPath, [
        "--input-type=module",
        "--eval",
        `import { withTimeout } from ${JSON.stringify(path)};
         const late = () => new Promise((resolve) => setTimeout(resolve, 100, "settled").unref());
         const never = () => new Promise(() => {});
         console.log(await withTimeout(${promise}, ${seconds}, () => new Error("too late")).catch((error) => error.message));`,
      ]);
    const [settled, expired] = [run("late", 0), run("never", 0.05)];
    expect([settled.status, String(settled.stdout)]).toEqual([0, "settled\n"]);
    expect([expired.status, String(expired.stdout)]).toEqual([0, "too late\n"]);
  });
});
