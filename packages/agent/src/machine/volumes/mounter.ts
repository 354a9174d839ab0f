import { type HostAccess, localHost } from '../host/host-access.ts';

/** What is to be mounted where, in the words of mount(8). */
export interface MountRequest {
  readonly type: string;
  readonly source: string;
  /** An existing directory. */
  readonly target: string;
  readonly options: readonly string[];
}

/** Mounts of the machine that volumes need. */
export interface Mounter {
  /** Nothing can be mounted; callers do what is possible without mounts. */
  readonly disabled?: true;
  /** Mounts, unless something is mounted there already. */
  mount(request: MountRequest): Promise<void>;
  /**
   * Shows at `target`, an existing file or directory, what is at `source` now, a path without symbolic links.
   * @throws when the source is gone, or a link has taken a place in its path
   */
  bind(source: string, target: string): Promise<void>;
  isMounted(path: string): Promise<boolean>;
  /** Takes away every mount at or below a directory. */
  unmountBelow(path: string): Promise<void>;
}

/** Mounts by the programs of the system; `mountPath` is used in place of `mount`. */
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
      // The innermost first.
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

/** For machines and tests where nothing may be mounted. */
export const noMounter: Mounter = {
  disabled: true,
  mount: () => Promise.reject(new Error('this agent may not mount')),
  bind: () => Promise.reject(new Error('this agent may not mount')),
  isMounted: () => Promise.resolve(false),
  unmountBelow: () => Promise.resolve(),
};

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
