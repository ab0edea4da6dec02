import type { ApiError, ReportData } from "../../../src/app/dashboard/api.js";

/** Where the answers come from: the server, or the data inside a report file. */
export interface Source {
  readonly isReport: boolean;
  /** @throws RequestError with the server's message. */
  get<Answer>(path: string): Promise<Answer>;
  send<Answer>(method: "PUT" | "POST" | "DELETE", path: string, body: unknown): Promise<Answer>;
  /** Posts a request whose answer is text that arrives in pieces. */
  stream(path: string, body: unknown): AsyncIterable<string>;
}

/** An answer that is not a success. */
class RequestError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** Requests from the server that the page came from; its cookie carries the token. */
class ServerSource implements Source {
  readonly isReport = false;

  get<Answer>(path: string): Promise<Answer> {
    return this.request(path, { method: "GET" });
  }

  send<Answer>(method: string, path: string, body: unknown): Promise<Answer> {
    const headers = { "content-type": "application/json" };
    return this.request(path, { method, headers, body: JSON.stringify(body) });
  }

  async *stream(path: string, body: unknown): AsyncGenerator<string> {
    const headers = { "content-type": "application/json" };
    const response = await fetch(path, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      credentials: "same-origin",
    });
    if (!response.ok || response.body === null) throw readError(response.status, await response.text());
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  }

  private async request<Answer>(path: string, init: RequestInit): Promise<Answer> {
    const response = await fetch(path, { ...init, credentials: "same-origin" }).catch(() => {
      throw new RequestError(
        "OFFLINE",
        "The dashboard's server does not answer. Is `llamagym dashboard` still running?",
      );
    });
    const text = await response.text();
    if (!response.ok) throw readError(response.status, text);
    return (text === "" ? undefined : JSON.parse(text)) as Answer;
  }
}

function readError(status: number, text: string): RequestError {
  try {
    const { code, message } = JSON.parse(text) as ApiError;
    return new RequestError(code, message);
  } catch {
    return new RequestError("HTTP", `The server answered with status ${status}.`);
  }
}

/** Answers from the data inside a report file. */
class ReportSource implements Source {
  readonly isReport = true;

  constructor(private readonly data: ReportData) {}

  get<Answer>(path: string): Promise<Answer> {
    const { answers } = this.data;
    const key = reportKey(path);
    if (Object.hasOwn(answers, key)) return Promise.resolve(answers[key] as Answer);
    return Promise.reject(new RequestError("NOT_IN_REPORT", "The report does not contain this part of the run."));
  }

  send<Answer>(): Promise<Answer> {
    return Promise.reject(new RequestError("NOT_IN_REPORT", "A report cannot change a run."));
  }

  stream(): AsyncIterable<string> {
    throw new RequestError("NOT_IN_REPORT", "A report has no model.");
  }
}

/**
 * Parameters that tell answers in a report apart: it has all metrics and episodes of a run in one
 * answer each.
 */
const REPORT_PARAMETERS: Readonly<Record<string, string>> = { series: "x", groups: "step" };

function reportKey(path: string): string {
  const { pathname, searchParams } = new URL(path, "http://report");
  const parameter = REPORT_PARAMETERS[pathname.slice(pathname.lastIndexOf("/") + 1)];
  const value = parameter === undefined ? null : searchParams.get(parameter);
  return value === null ? pathname : `${pathname}?${parameter}=${value}`;
}

/** Opens the data of the page: the element `#report` of a report file, or the server. */
export function openSource(): Source {
  const element = document.getElementById("report");
  return element === null
    ? new ServerSource()
    : new ReportSource(JSON.parse(element.textContent ?? "{}") as ReportData);
}

/** Returns the path of a request about a run. */
export function runPath(run: string, rest = ""): string {
  return `/api/runs/${encodeURIComponent(run)}${rest}`;
}
