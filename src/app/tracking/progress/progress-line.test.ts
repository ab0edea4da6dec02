import { expect, it } from "vitest";
import { ProgressLine } from "./progress-line.js";

function createLine(isTTY: boolean) {
  const written: string[] = [];
  const time = { now: 0 };
  const out = { isTTY, write: (text: string) => written.push(text) };
  const line = new ProgressLine({ out, env: { NO_COLOR: "1" }, now: () => time.now });
  return { written, time, line };
}

const fields = (text: string) => () => [{ text, priority: 0 }];
const CLEAR = "\r\u001B[K";

it("erases a transient activity and keeps the last state of others", () => {
  const { written, line } = createLine(true);
  const [download, training] = [line.start(fields("download"), { isTransient: true }), line.start(fields("training"))];
  download.update();
  training.update();
  download.end();
  training.end();
  expect(written).toEqual([`${CLEAR}download`, CLEAR, `${CLEAR}training`, `${CLEAR}training`, "\n"]);
});

it("makes room for other output and redraws at the next update", () => {
  const { written, line } = createLine(true);
  const training = line.start(fields("training"));
  training.update();
  line.clear();
  training.update();
  expect(written).toEqual([`${CLEAR}training`, CLEAR, `${CLEAR}training`]);
});

it("logs a transient activity only when it lasts", () => {
  const { written, time, line } = createLine(false);
  const download = line.start(fields("download"), { isTransient: true });
  download.update();
  time.now = 10_000;
  download.update();
  download.end();
  expect(written).toEqual(["download\n"]);
});
