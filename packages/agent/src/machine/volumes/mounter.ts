import { type HostAccess, localHost } from '../host/host-access.ts';

/** A mount in the terms of mount(8). */
export interface MountRequest {
  readonly type: string;
  readonly source: string;
  /** An existing directory. */
  readonly target: string;
  readonly options: readonly string[];
}

/** Mounts of volumes. */
export interface Mounter {
  /** Mounting is not possible; callers use alternatives without mounts. */
  readonly disabled?: true;
  /** Mounts, unless something is mounted at the target already. */
  mount(request: MountRequest): Promise<void>;
  /**
   * Bind-mounts `source`, a path without symbolic links, at the existing file or directory `target`.
   *
   * @throws when the source does not exist, or its path contains a symbolic link
   */
  bind(source: string, target: string): Promise<void>;
  isMounted(path: string): Promise<boolean>;
  /** Unmounts everything at or below a directory. */
  unmountBelow(path: string): Promise<void>;
}

/** Mounts with the programs of the system; `mountPath` replaces `mount`. */
export function systemMounter(mountPath = 'mount', host: HostAccess = localHost): Mounter {
  const mountsBelow = async (path: string) =>
    (await host.mountTable())
      .split('\n')
      .map((line) => unescapeOctal(line.split(' ')[4] ?? ''))
      .filter((point) => point === path || point.startsWith(`${path}/`));
  const isMounted = async (path: string) => (await mountsBelow(path)).includes(path);
  return {
    async mount({ type, source, target, options }) {
      if (await isMounted(target)) return;
      await host.run(mountPath, mountWords({ type, source, target, options }));
    },
    bind: (source, target) => host.bind(mountPath, source, target),
    isMounted,
    async unmountBelow(path) {
      // Inner mounts first.
      for (const point of (await mountsBelow(path)).sort((a, b) => b.length - a.length))
        await host.run('umount', [point]);
    },
  };
}

function mountWords({ type, source, target, options }: MountRequest): string[] {
  return [
    ...(type === '' ? [] : ['-t', type]),
    ...(options.length === 0 ? [] : ['-o', options.join(',')]),
    source,
    target,
  ];
}

/** For machines and tests where mounting is not possible. */
export const noMounter: Mounter = {
  disabled: true,
  mount: () => Promise.reject(new Error('mounting is disabled for this agent')),
  bind: () => Promise.reject(new Error('mounting is disabled for this agent')),
  isMounted: () => Promise.resolve(false),
  unmountBelow: () => Promise.resolve(),
};

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
