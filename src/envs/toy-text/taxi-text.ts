import type { TextInterface } from "../text-interface.js";
import { findLastNamedAction } from "../text-parsing.js";
import { decodeState, IN_TAXI, STOP_POSITIONS, getActionMask } from "./taxi-grid.js";

const CHOICES = ["south", "north", "east", "west", "pick up", "drop off"];

const formatPosition = ([row, column]: readonly [number, number]) => `row ${row}, column ${column}`;

/** Places are rows and columns counted from 0, row 0 in the north. */
export const taxiText: TextInterface<number, number> = {
  systemPrompt:
    "Drive the taxi to the passenger, pick up, drive to the destination and drop off. Rows count from north to south, columns from west to east. Answer south, north, east, west, pick up or drop off.",
  formatObservation: (state) => {
    const { row, column, passenger, destination } = decodeState(state);
    const mask = getActionMask(state);
    const passengerText = passenger === IN_TAXI ? "in taxi" : `at ${formatPosition(STOP_POSITIONS[passenger])}`;
    const openDirections = CHOICES.slice(0, 4).filter((_, action) => mask[action] === 1);
    return `Taxi at ${formatPosition([row, column])}. Passenger ${passengerText}. Destination ${formatPosition(STOP_POSITIONS[destination])}. Open: ${openDirections.join(" ")}.`;
  },
  parseAction: (completion) => findLastNamedAction(completion, CHOICES, { pickup: 4, dropoff: 5 }),
  formatAction: (action) => CHOICES[action],
  choices: CHOICES,
};
