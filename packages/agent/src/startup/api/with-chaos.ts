import { ConnectionError, pause } from '@keelson/client';
import type { Clock } from '@keelson/core';
import type { ClientChoice } from './switching-client.ts';

/** The longest of the delays that are made up. */
const longestMs = 1_000;

export interface ChaosOptions {
  /** 0..1: how likely each request is delayed, and how likely it fails. */
  readonly chance: number;
  readonly clock: Clock;
  /** 0..1. */
  readonly random: () => number;
}

/**
 * Makes requests late, or fail as if the connection was reset before the server saw them. For tests of whoever makes
 * them.
 */
export function withChaos(choice: ClientChoice, { chance, clock, random }: ChaosOptions): ClientChoice {
  const never = new AbortController().signal;
  return {
    async current() {
      if (random() < chance) await pause(clock, random() * longestMs, never);
      if (random() < chance) throw new ConnectionError('Unreachable', 'connection reset, made up by --chaos-chance');
      return choice.current();
    },
    refused: (client) => choice.refused(client),
  };
}
