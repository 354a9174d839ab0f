import type { QosClass } from '@keelson/kinds';
import type { CgroupConfig } from '../../base/config/cgroup-config.ts';

/** The cgroup of all pods, below the configured root. */
const podsGroup = 'kubepods';

const classGroups: Readonly<Record<QosClass, readonly string[]>> = {
  Guaranteed: [],
  Burstable: ['burstable'],
  BestEffort: ['besteffort'],
};

/** Paths of cgroups from the root of every hierarchy, in the form of the cgroup driver. */
export class CgroupNames {
  readonly #root: readonly string[];
  readonly #path: (parts: readonly string[]) => string;

  constructor({ root, driver }: Pick<CgroupConfig, 'root' | 'driver'>) {
    this.#root = (root ?? '/').split('/').filter(Boolean);
    this.#path = driver === 'systemd' ? slicePath : (parts) => `/${parts.join('/')}`;
  }

  /** The parent of the cgroup of all pods. */
  root(): string {
    return this.#path(this.#root);
  }

  /** The cgroup of all pods. */
  pods(): string {
    return this.#path([...this.#root, podsGroup]);
  }

  /** The cgroup of a quality-of-service class. Guaranteed pods have no cgroup of their class. */
  ofClass(qos: QosClass): string {
    return this.#path([...this.#root, podsGroup, ...classGroups[qos]]);
  }

  pod(qos: QosClass, uid: string): string {
    // The UID in a manifest can be any text.
    return this.#path([...this.#root, podsGroup, ...classGroups[qos], `pod${uid.replace(/[/\0\n]/g, '_')}`]);
  }
}

/**
 * The path of nested systemd slices. The name of a slice contains the names of its parents, joined by `-`, so a `-` in
 * a part becomes `_`. A part that ends in `.slice` already is a full name.
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
