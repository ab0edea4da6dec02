import type { TextForm } from "../text-form.js";
import { lastNamedAction } from "../text-parsing.js";
import { decodeTaxi, IN_TAXI, STOP_PLACES, taxiActionMask } from "./taxi-grid.js";

const CHOICES = ["south", "north", "east", "west", "pick up", "drop off"];

const place = ([row, column]: readonly [number, number]) => `row ${row}, column ${column}`;

/** Places are rows and columns counted from 0, row 0 in the north. */
export const taxiText: TextForm<number, number> = {
  systemPrompt:
    "Drive the taxi to the passenger, pick up, drive to the destination and drop off. Rows count from north to south, columns from west to east. Answer south, north, east, west, pick up or drop off.",
  formatObservation: (state) => {
    const { row, column, passenger, destination } = decodeTaxi(state);
    const mask = taxiActionMask(state);
    const rider = passenger === IN_TAXI ? "in taxi" : `at ${place(STOP_PLACES[passenger])}`;
    const open = CHOICES.slice(0, 4).filter((_, action) => mask[action] === 1);
    return `Taxi at ${place([row, column])}. Passenger ${rider}. Destination ${place(STOP_PLACES[destination])}. Open: ${open.join(" ")}.`;
  },
  parseAction: (reply) => lastNamedAction(reply, CHOICES, { pickup: 4, dropoff: 5 }),
  formatAction: (action) => CHOICES[action],
  choices: CHOICES,
};
