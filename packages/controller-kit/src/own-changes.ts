import type { KubeObject } from '@keelson/core';
import type { WrittenVersion } from './observed-writes.ts';
import type { Trigger } from './reconcile-trace.ts';

/** Number of writes of a controller that are recognized when an informer reports them. */
const maxRemembered = 8192;
/** Number of triggers of one run that are shown, and that are compared with own writes. */
const maxShown = 8;
const maxCompared = 1024;

/** The last changes that a controller made itself. */
export class OwnChanges {
  readonly #ids = new Set<string>();

  add({ resource, resourceVersion, removedUid }: WrittenVersion): void {
    if (resourceVersion !== undefined) this.#add(versionId(resource.group, resource.resource, resourceVersion));
    if (removedUid !== undefined) this.#add(removedUid);
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  #add(id: string): void {
    this.#ids.add(id);
    if (this.#ids.size <= maxRemembered) return;
    const [oldest] = this.#ids;
    if (oldest !== undefined) this.#ids.delete(oldest);
  }
}

/** The changes that lead to one run. */
export class TriggerList {
  /** The first changes, at most eight. */
  readonly first: Trigger[] = [];
  /** Changes that were not known as own when they were observed: the answer to the write may come later. */
  readonly #unknown = new Set<string>();
  #isForeign = false;

  add(trigger: Trigger, group: string, object: KubeObject, own: OwnChanges): void {
    if (this.first.length < maxShown) this.first.push(trigger);
    const { uid = '', resourceVersion = '' } = object.metadata ?? {};
    const id = trigger.change === 'deleted' ? uid : versionId(group, trigger.resource, resourceVersion);
    if (own.has(id) || this.#isForeign) return;
    this.#unknown.add(id);
    if (this.#unknown.size > maxCompared) this.#isForeign = true;
  }

  /** Returns true when the controller itself made all of these changes, and when there are none. */
  areAllIn(own: OwnChanges): boolean {
    return !this.#isForeign && [...this.#unknown].every((id) => own.has(id));
  }
}

function versionId(group: string, resource: string, resourceVersion: string): string {
  return `${group}/${resource}@${resourceVersion}`;
}
