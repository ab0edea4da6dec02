import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FileLock } from "./file-lock.js";
import { FolderLock, LOCK_FILE } from "./folder-lock.js";
import { getProcessIdentity } from "./process-identity.js";
import { getTemporaryPath } from "./temporary-path.js";
import { writeFileAtomic } from "./write-file-atomic.js";

let folder: string;
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "llamagym-lock-"))));
afterAll(async () => rm(folder, { recursive: true }));

/** A process id that was never alive on this machine: above Linux's limit. */
const DEAD_PID = 2 ** 22 + 1;
const owner = { token: crypto.randomUUID(), ...getProcessIdentity(), since: "2026-01-01T00:00:00.000Z" };
let count = 0;
const moduleUrl = new URL("../../../dist/core/files/file-lock.js", import.meta.url).href;

async function writeLock(content: object | string): Promise<string> {
  const path = join(folder, `lock-${count++}`, LOCK_FILE);
  await mkdir(join(path, ".."));
  await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

test.each([
  ["of a process that has ended", { ...owner, pid: DEAD_PID }],
  ["of a process whose id was used again", { ...owner, processStart: "1" }],
])("takes over the lock %s", async (_, content) => {
  const path = await writeLock(content);
  const lock = await FileLock.tryAcquire(path);
  expect(lock).toBeInstanceOf(FileLock);
  expect(await readdir(join(path, ".."))).toEqual([LOCK_FILE]);
  await (lock as FileLock).release();
  expect(await readdir(join(path, ".."))).toEqual([]);
});

test("takes over a lock although the process that took it over was killed in between", async () => {
  const stale = { ...owner, pid: DEAD_PID };
  const path = await writeLock(stale);
  await writeFile(`${path}.${stale.token}`, JSON.stringify({ ...stale, token: crypto.randomUUID() }));
  expect(await FileLock.tryAcquire(path)).toBeInstanceOf(FileLock);
  expect(await readdir(join(path, ".."))).toEqual([LOCK_FILE]);
});

test("names the holder of a folder, since when, and when the lock of another host is taken over", async () => {
  const path = await writeLock({ ...owner, pid: DEAD_PID, host: "elsewhere" });
  const error = FolderLock.acquire(join(path, ".."));
  await expect(error).rejects.toMatchObject({ code: "FOLDER_IN_USE" });
  await expect(error).rejects.toThrow(`in use by process ${DEAD_PID} on elsewhere since 2026-01-01`);
  await expect(error).rejects.toThrow("A lock without a sign of life for 60 s is taken over.");
});

test("refuses a folder that this process holds, and leaves an unreadable lock", async () => {
  const path = join(folder, "held");
  const lock = await FolderLock.acquire(path);
  await expect(FolderLock.acquire(path)).rejects.toThrow("in use by this process");
  await lock.release();
  expect(await readdir(folder)).not.toContain("held");
  await expect(FolderLock.acquire(join(await writeLock("?"), ".."))).rejects.toThrow("unreadable");
});

test.each([
  ["of another host", { ...owner, host: "elsewhere" }],
  ["of another container or boot, also with a process id of this one", { ...owner, pidNamespace: "another" }],
  ["with a process id that is unused here, of another container", { ...owner, pid: DEAD_PID, pidNamespace: "another" }],
  ["that is unreadable", "?"],
])("takes over the lock %s once its heartbeats end", async (_, content) => {
  const path = await writeLock(content);
  expect(await FileLock.tryAcquire(path)).not.toBeInstanceOf(FileLock);
  await utimes(path, 0, 0);
  const lock = await FileLock.tryAcquire(path);
  expect(lock).toBeInstanceOf(FileLock);
  await (lock as FileLock).release();
});

test("keeps the lock of a process that runs here and is too busy for heartbeats", async () => {
  const path = await writeLock(owner);
  await utimes(path, 0, 0);
  expect(await FileLock.tryAcquire(path)).toMatchObject({ token: owner.token });
});

test("notices that its folder was deleted or replaced", async () => {
  const path = join(folder, "deleted");
  const lock = await FolderLock.acquire(path);
  await lock.verify();
  await rm(path, { recursive: true });
  await expect(lock.verify()).rejects.toThrow("it is missing");
  await mkdir(path);
  await expect(lock.verify()).rejects.toThrow("deleted or replaced");
  await lock.release();
  expect(await readdir(folder)).toContain("deleted");
});

/** Holds a lock until it is killed. */
const HOLDER = `
  const { FileLock } = await import(${JSON.stringify(moduleUrl)});
  const lock = await FileLock.tryAcquire(process.argv[1]);
  process.stdout.write(lock instanceof FileLock ? "held" : "refused");
  if (lock instanceof FileLock) process.stdin.resume();`;
/**
 * Runs a program in a new namespace of process ids with this host name, as in another container.
 */
const CONTAINER = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc"];
const hasContainers = spawnSync("unshare", [...CONTAINER, "true"]).status === 0;

test.runIf(hasContainers)(
  "two containers with one host name respect each other's locks",
  { timeout: 60_000 },
  async () => {
    const path = join(folder, "containers", LOCK_FILE);
    const hold = async () => {
      const args = [...CONTAINER, process.execPath, "--input-type=module", "-e", HOLDER, path];
      const child = spawn("unshare", args, { stdio: ["pipe", "pipe", "inherit"] });
      const [outcome] = (await once(child.stdout, "data")) as [Buffer];
      return { child, outcome: String(outcome) };
    };
    const own = (await FileLock.tryAcquire(path)) as FileLock;
    expect((await hold()).outcome).toBe("refused");
    await own.release();

    const { child, outcome } = await hold();
    expect(outcome).toBe("held");
    expect((await hold()).outcome).toBe("refused");
    const other = await FileLock.tryAcquire(path);
    expect(other).toMatchObject({ host: owner.host });
    expect(other).not.toHaveProperty("pidNamespace", owner.pidNamespace);
    // Its heartbeats, not its age, keep the lock.
    await utimes(path, 0, 0);
    while ((await stat(path)).mtimeMs === 0) await new Promise((done) => setTimeout(done, 50));
    expect(await FileLock.tryAcquire(path)).not.toBeInstanceOf(FileLock);

    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    expect(await FileLock.tryAcquire(path)).not.toBeInstanceOf(FileLock);
    await utimes(path, 0, 0);
    expect((await hold()).outcome).toBe("held");
  },
);

test("tells soon that its lock file was deleted", async () => {
  const path = join(folder, "lost", LOCK_FILE);
  const lock = (await FileLock.tryAcquire(path)) as FileLock;
  await rm(path);
  await once(lock.lost, "abort");
  expect(await lock.release()).toBe(false);
});

test("one of many processes takes a stale lock", { timeout: 60_000 }, async () => {
  const script = `
    const { FileLock } = await import(${JSON.stringify(moduleUrl)});
    process.stdin.once("data", async () => {
      const lock = await FileLock.tryAcquire(process.argv[1]);
      process.stdout.write(lock instanceof FileLock ? "won" : "lost");
      process.stdin.once("data", () => process.kill(process.pid, "SIGKILL"));
    });
    process.stdout.write("ready");`;
  const path = await writeLock({ ...owner, pid: DEAD_PID });
  for (let round = 0; round < 3; round++) {
    const children = Array.from({ length: 8 }, () =>
      spawn(process.execPath, ["--input-type=module", "-e", script, path], { stdio: ["pipe", "pipe", "inherit"] }),
    );
    const next = async () =>
      Promise.all(
        children.map((child) => new Promise<string>((done) => child.stdout.once("data", (data) => done(String(data))))),
      );
    await next();
    const outcomes = next();
    for (const child of children) child.stdin.write("go\n");
    expect((await outcomes).filter((outcome) => outcome === "won")).toHaveLength(1);
    const ended = Promise.all(children.map((child) => new Promise((done) => child.once("exit", done))));
    for (const child of children) child.stdin.write("end\n");
    await ended;
    expect(await readdir(join(path, ".."))).toEqual([LOCK_FILE]);
  }
});

test("removes temporary files of killed processes, and old ones of other hosts", async () => {
  const target = join(folder, "result.json");
  const own = getTemporaryPath(target);
  const killed = own.replace(`.${process.pid}-`, `.${DEAD_PID}-`);
  const elsewhere = killed.replace(/-[\da-f]{8}(?=-[\da-f]{8}-[\da-f]{8}\.partial$)/, "-00000000");
  const old = elsewhere.replace("-00000000", "-11111111");
  const paths = [own, killed, elsewhere, old];
  for (const path of paths) await writeFile(path, "half");
  await utimes(old, 0, 0);
  await writeFileAtomic(target, "whole");
  const names = await readdir(folder);
  expect(paths.map((path) => names.includes(path.slice(folder.length + 1)))).toEqual([true, false, true, false]);
  expect(await readFile(target, "utf8")).toBe("whole");
});
