import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ReportData, RunList, SeriesResponse } from "./api.js";
import { renderReport } from "./report.js";

const HOSTILE = "</script><script>alert(1)</script>";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "report-"));
  await mkdir(join(folder, "page/assets"), { recursive: true });
  await writeFile(
    join(folder, "page/index.html"),
    '<html><head><link rel="icon" href="./i.svg"><script type="module" crossorigin src="./assets/a.js"></script>' +
      '<link rel="stylesheet" crossorigin href="./assets/a.css"></head><body></body></html>',
  );
  await writeFile(join(folder, "page/assets/a.js"), 'const text = "</script>$&";');
  await writeFile(join(folder, "page/assets/a.css"), "body { color: red }");
  for (const parent of ["a", "b"]) {
    await mkdir(join(folder, parent, "run"), { recursive: true });
    await writeFile(join(folder, parent, "run/config.json"), JSON.stringify({ version: 2, env: HOSTILE }));
    await writeFile(join(folder, parent, "run/metrics.jsonl"), '{"step":1,"loss":1}\n{"step":2,"loss":0.5}\n');
  }
});
afterAll(async () => rm(folder, { recursive: true }));

it("writes runs with the page into one file that loads nothing", async () => {
  const html = await renderReport([join(folder, "a/run"), join(folder, "b/run")], join(folder, "page"));
  expect(html).not.toMatch(/\b(src|href)=/);
  expect(html.match(/<script\b/g)).toHaveLength(2);
  expect(html).toContain(String.raw`const text = "<\/script>$&";`);
  expect(html).toContain("script-src 'sha256-");
  const json = /<script type="application\/json" id="report">(.*?)<\/script>/s.exec(html)![1];
  const { answers } = JSON.parse(json) as ReportData;
  const { runs, isReport } = answers["/api/runs"] as RunList;
  expect(isReport).toBe(true);
  expect(runs.map(({ id, env }) => [id, env])).toEqual([
    ["run", HOSTILE],
    ["run-2", HOSTILE],
  ]);
  const { series } = answers["/api/runs/run-2/series?x=updates"] as SeriesResponse;
  expect(series).toEqual([{ name: "loss", x: [1, 2], y: [1, 0.5], count: 2 }]);
  for (const path of ["/api/metrics", "/api/runs/run", "/api/runs/run/episodes", "/api/runs/run/groups"])
    expect(answers).toHaveProperty([path]);
});

it("rejects folders without a run", async () => {
  await expect(renderReport([folder], join(folder, "page"))).rejects.toMatchObject({ code: "FILE_NOT_FOUND" });
});
