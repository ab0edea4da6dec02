import { spawn } from "node:child_process";

const PROGRAMS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Opens a page in the user's browser; without one, nothing happens. */
export function openBrowser(url: string): void {
  const [program, ...args] = PROGRAMS[process.platform] ?? ["xdg-open"];
  spawn(program, [...args, url], { stdio: "ignore", detached: true })
    .on("error", () => {})
    .unref();
}
