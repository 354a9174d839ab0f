import type { RequestAttributes, UserInfo } from '@keelson/core';
import type { HttpLevels } from '../metrics.ts';
import type { HttpLimits } from '../options.ts';

/** Where an admitted request is counted; `exempt` is counted nowhere. */
export type FlightClass = 'read' | 'mutate' | 'watch' | 'connect' | 'exempt';

const reading: ReadonlySet<string> = new Set(['get', 'list', 'head', 'watch', 'proxy']);

/**
 * Requests that are served before others and not refused for overload: a holder whose lease is not renewed in time is
 * replaced, which makes more work. Health checks do not wait at all: they are answered in the turn that reads them.
 */
export function isUrgent({ apiGroup, resource, subresource, name, verb }: RequestAttributes): boolean {
  return (
    apiGroup === 'coordination.k8s.io' &&
    resource === 'leases' &&
    subresource === '' &&
    (name !== '' || verb === 'create')
  );
}

export const isMaster = (user: UserInfo): boolean => user.groups.includes('system:masters');

/**
 * Limits the number of concurrent requests: see docs/reference/api-rules.md#limits-of-a-request. Reads and mutations
 * are counted separately, so that a burst of one cannot block the other. Members of `system:masters` can always repair
 * a server: they are bound only by the totals of watches and of calls that are passed on, and by overload
 * (`Pipeline.refusedByOverload`).
 */
export class InFlightLimits {
  readonly #limits: HttpLimits;
  #reads = 0;
  #mutations = 0;
  #watches = 0;
  #connects = 0;
  readonly #watchesByUser = new Map<string, number>();

  constructor(limits: HttpLimits) {
    this.#limits = limits;
  }

  get levels(): HttpLevels {
    return { reads: this.#reads, mutations: this.#mutations, watches: this.#watches, connects: this.#connects };
  }

  classOf(attributes: RequestAttributes, user: UserInfo): FlightClass {
    if (attributes.verb === 'watch' && attributes.isResourceRequest) return 'watch';
    if (isMaster(user)) return 'exempt';
    return reading.has(attributes.verb) ? 'read' : 'mutate';
  }

  /** Takes a place; false when all are taken. */
  enter(flight: FlightClass, user: UserInfo): boolean {
    switch (flight) {
      case 'exempt':
        return true;
      case 'read':
        if (this.#reads >= this.#limits.readsInFlight) return false;
        this.#reads += 1;
        return true;
      case 'mutate':
        if (this.#mutations >= this.#limits.mutationsInFlight) return false;
        this.#mutations += 1;
        return true;
      case 'watch':
        return this.#enterWatch(user);
      case 'connect':
        if (this.#connects >= this.#limits.connects) return false;
        this.#connects += 1;
        return true;
    }
  }

  /** Gives back the place taken by `enter`. */
  leave(flight: FlightClass, user: UserInfo): void {
    if (flight === 'read') this.#reads -= 1;
    else if (flight === 'mutate') this.#mutations -= 1;
    else if (flight === 'watch') this.#leaveWatch(user);
    else if (flight === 'connect') this.#connects -= 1;
  }

  #enterWatch(user: UserInfo): boolean {
    const own = this.#watchesByUser.get(user.name) ?? 0;
    if (this.#watches >= this.#limits.watches) return false;
    if (own >= this.#limits.watchesPerUser && !isMaster(user)) return false;
    this.#watches += 1;
    this.#watchesByUser.set(user.name, own + 1);
    return true;
  }

  #leaveWatch(user: UserInfo): void {
    this.#watches -= 1;
    const own = (this.#watchesByUser.get(user.name) ?? 1) - 1;
    if (own === 0) this.#watchesByUser.delete(user.name);
    else this.#watchesByUser.set(user.name, own);
  }
}
