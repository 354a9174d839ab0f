import { ConnectionError, pause } from '@keelson/client';
import type { Clock } from '@keelson/core/runtime';
import type { ClientChoice } from './switching-client.ts';

/** Maximum injected delay. */
const maxDelayMs = 1_000;

export interface ChaosOptions {
  /** 0..1: the probability that a request is delayed, and the probability that it fails. */
  readonly chance: number;
  readonly clock: Clock;
  /** Returns a number in [0, 1). */
  readonly random: () => number;
}

/**
 * Injects delays of requests, and failures as if the connection was reset before the server received the request. It is
 * used to test the error handling of callers.
 */
export function withChaos(choice: ClientChoice, { chance, clock, random }: ChaosOptions): ClientChoice {
  const never = new AbortController().signal;
  return {
    async current() {
      if (random() < chance) await pause(clock, random() * maxDelayMs, never);
      if (random() < chance) throw new ConnectionError('Unreachable', 'connection reset, injected by --chaos-chance');
      return choice.current();
    },
    refused: (client) => choice.refused(client),
  };
}
