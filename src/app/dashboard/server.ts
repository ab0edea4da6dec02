import { Hono } from "hono";
import { errorMessage, LlamaGymError } from "../../core/errors.js";
import { HttpError } from "../../core/platform/node/http/http-error.js";
import { listenWithApp } from "../server/listen.js";
import { controlAccess, createToken } from "./access.js";
import type { ApiError } from "./api.js";
import { DashboardData } from "./dashboard-data.js";
import { createApi } from "./routes.js";
import { RunsFolder } from "./run-files.js";
import { openDocs, openPage } from "./static-files.js";

const STATUS: Readonly<Partial<Record<string, 400 | 404 | 409>>> = {
  INVALID_ARGUMENT: 400,
  FILE_NOT_FOUND: 404,
  INVALID_STATE: 409,
};

export interface DashboardOptions {
  /** Folder of runs. */
  readonly runs: string;
  readonly host?: string;
  /** 0 picks a free one. */
  readonly port?: number;
  /** Folder of the built page; that of the package by default. */
  readonly page?: string;
  /**
   * Whether runs may be played whose config.json names files: model folders, and options of
   * environments. Default false.
   */
  readonly allowFiles?: boolean;
}

/** A running dashboard. */
export interface Dashboard {
  /** Link with the token. */
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** Serves the dashboard of a folder of runs. @throws FILE_NOT_FOUND, and as `listen`. */
export async function startDashboard({
  runs,
  host = "127.0.0.1",
  port = 0,
  page,
  allowFiles = false,
}: DashboardOptions): Promise<Dashboard> {
  const token = createToken();
  const folder = await RunsFolder.open(runs);
  const closed = new AbortController();
  const app = new Hono();
  app.use(controlAccess(token, [host]));
  app.onError((error, c) => {
    if (error instanceof HttpError)
      return c.json({ code: "REQUEST_REFUSED", message: error.message } satisfies ApiError, error.status as 413);
    const code = error instanceof LlamaGymError ? error.code : "INTERNAL";
    return c.json({ code, message: errorMessage(error) } satisfies ApiError, STATUS[code] ?? 500);
  });
  app.route("/api", createApi(new DashboardData(folder), closed.signal, allowFiles));
  app.get("/docs/:page{[a-z-]+\\.md}", openDocs);
  app.get("*", await openPage(page));
  const { server, port: actualPort, url } = await listenWithApp(app, { host, port });
  return {
    url: `${url.replace(/\/\/(0\.0\.0\.0|\[::\]):/, "//127.0.0.1:")}/?token=${token}`,
    port: actualPort,
    close: async () => {
      closed.abort();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}
