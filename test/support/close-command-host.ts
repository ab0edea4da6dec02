// Runs for each test file: commands of one file do not see what those of another have loaded.
import { afterAll } from "vitest";
import { closeHost } from "./command.js";

afterAll(closeHost);
