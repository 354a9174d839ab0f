import { RuntimeError } from '@keelson/container-runtime';

/** What an image was built for, in the words of indexes. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
  /** `v7` of `arm`, for example. */
  readonly variant?: string;
}

const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', mips: 'mips', mipsel: 'mipsle' };

/** Words for the architecture of this process. */
function machine(): { readonly architecture: string; readonly armVersion: number } {
  const version = Number(Reflect.get(process.config.variables, 'arm_version'));
  return {
    architecture: architectures[process.arch] ?? process.arch,
    armVersion: process.arch === 'arm64' ? 8 : Number.isInteger(version) ? version : 7,
  };
}

/** The entry that fits this machine best. @throws `ImageNotFound` */
export function choosePlatform<T extends { readonly platform?: Platform }>(entries: readonly T[]): T {
  const { architecture, armVersion } = machine();
  const fitting = entries
    .map((entry) => ({ entry, version: Number(entry.platform?.variant?.replace(/^v/, '') ?? 0) }))
    .filter(({ entry: { platform } }) => platform?.os === 'linux' && platform.architecture === architecture)
    .filter(({ version }) => !architecture.startsWith('arm') || !(version > armVersion))
    // Of several variants, the newest that this machine has; on other architectures, the one that asks for nothing
    // special.
    .sort((a, b) => (architecture.startsWith('arm') ? b.version - a.version : a.version - b.version));
  const best = fitting[0]?.entry;
  if (best === undefined) throw new RuntimeError('ImageNotFound', `the image has no variant for linux/${architecture}`);
  return best;
}
