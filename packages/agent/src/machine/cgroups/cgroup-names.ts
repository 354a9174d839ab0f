import type { QosClass } from '@keelson/kinds';
import type { CgroupConfig } from '../../base/config/cgroup-config.ts';

/** Below the root of the options stands one group with all pods. */
const podsGroup = 'kubepods';

const classGroups: Readonly<Record<QosClass, readonly string[]>> = {
  Guaranteed: [],
  Burstable: ['burstable'],
  BestEffort: ['besteffort'],
};

/** Paths of groups from the root of every hierarchy, as the driver writes them. */
export class CgroupNames {
  readonly #root: readonly string[];
  readonly #path: (parts: readonly string[]) => string;

  constructor({ root, driver }: Pick<CgroupConfig, 'root' | 'driver'>) {
    this.#root = (root ?? '/').split('/').filter(Boolean);
    this.#path = driver === 'systemd' ? slicePath : (parts) => `/${parts.join('/')}`;
  }

  /** The group below which that of all pods is. */
  root(): string {
    return this.#path(this.#root);
  }

  /** The group of all pods. */
  pods(): string {
    return this.#path([...this.#root, podsGroup]);
  }

  /** The group of a class; guaranteed pods stand beside the other two classes. */
  ofClass(qos: QosClass): string {
    return this.#path([...this.#root, podsGroup, ...classGroups[qos]]);
  }

  pod(qos: QosClass, uid: string): string {
    // UIDs of manifests are anybody's text.
    return this.#path([...this.#root, podsGroup, ...classGroups[qos], `pod${uid.replace(/[/\0\n]/g, '_')}`]);
  }
}

/**
 * Slices carry the names of those above them, joined by `-`, which therefore is `_` in each name itself. A part that is
 * a slice already has its full name.
 */
function slicePath(parts: readonly string[]): string {
  let name = '';
  let path = '';
  for (const part of parts) {
    if (part.endsWith('.slice')) name = part.slice(0, -'.slice'.length);
    else name += `${name === '' ? '' : '-'}${part.replaceAll('-', '_')}`;
    path += `/${name}.slice`;
  }
  return path === '' ? '/' : path;
}
