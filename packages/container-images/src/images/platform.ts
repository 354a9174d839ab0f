import { RuntimeError } from '@keelson/container-runtime';

/** Platform of an image, with the names that indexes use. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
  /** Variant of the architecture, for example `v7` of `arm`. */
  readonly variant?: string;
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', mips: 'mips', mipsel: 'mipsle' };

/** Architecture of this process, with the names that indexes use. */
function machine(): { readonly architecture: string; readonly armVersion: number } {
  const version = Number(Reflect.get(process.config.variables, 'arm_version'));
  return {
    architecture: architectures[process.arch] ?? process.arch,
    armVersion: process.arch === 'arm64' ? 8 : Number.isInteger(version) ? version : 7,
  };
}

/** The entry that matches this machine best. @throws `ImageNotFound` without one. */
export function choosePlatform<T extends { readonly platform?: Platform }>(entries: readonly T[]): T {
  const { architecture, armVersion } = machine();
  const fitting = entries
    .map((entry) => ({ entry, version: Number(entry.platform?.variant?.replace(/^v/, '') ?? 0) }))
    .filter(({ entry: { platform } }) => platform?.os === 'linux' && platform.architecture === architecture)
    .filter(({ version }) => !architecture.startsWith('arm') || !(version > armVersion))
    // On arm, the newest variant that this machine supports; on other architectures, the lowest one.
    .sort((a, b) => (architecture.startsWith('arm') ? b.version - a.version : a.version - b.version));
  const best = fitting[0]?.entry;
  if (best === undefined) throw new RuntimeError('ImageNotFound', `the image has no variant for linux/${architecture}`);
  return best;
}
