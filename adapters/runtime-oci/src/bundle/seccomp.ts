import { readFile } from 'node:fs/promises';
import { type ContainerSecurityContext, RuntimeError } from '@keelson/container-runtime';
import { allowedByCapability, allowedByProcessor, allowedCalls } from './system-calls.ts';

const architectures: Readonly<Record<string, readonly string[]>> = {
  x64: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86', 'SCMP_ARCH_X32'],
  arm64: ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_ARM'],
};

const notPermitted = 1; // EPERM
const notImplemented = 38; // ENOSYS
/** Flags of clone(2) that make namespaces. */
const namespaceFlags = 0x7e020000;
const vsockFamily = 40;
/** Values of personality(2) that select the default execution domain or only query the current one. */
const harmlessPersonalities = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];

interface Rule {
  readonly names: readonly string[];
  readonly action: string;
  readonly errnoRet?: number;
  readonly args?: readonly {
    readonly index: number;
    readonly value: number;
    readonly valueTwo?: number;
    readonly op: string;
  }[];
}

/**
 * The seccomp filter of a container; undefined when it is not filtered.
 *
 * @throws RuntimeError `InvalidArgument` for an unreadable profile, `Unsupported` when seccomp is not available
 */
export async function seccompOf(
  { seccomp, privileged }: ContainerSecurityContext,
  capabilities: readonly string[],
  supported: boolean,
): Promise<object | undefined> {
  if (seccomp === undefined || seccomp.type === 'unconfined' || privileged) return undefined;
  if (!supported) throw new RuntimeError('Unsupported', 'system calls cannot be filtered on this machine');
  if (seccomp.type === 'runtimeDefault') return defaultProfile(capabilities);
  return profileOfFile(seccomp.localhostRef ?? '', capabilities);
}

/** The default filter. System calls that it does not list fail with EPERM. */
export function defaultProfile(capabilities: readonly string[], processor: string = process.arch): object {
  const allow = (names: readonly string[], args?: Rule['args']): Rule => {
    return { names, action: 'SCMP_ACT_ALLOW', ...(args && { args }) };
  };
  const maskedEqual = { index: 0, value: namespaceFlags, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' };
  const rules = [
    allow([...allowedCalls, ...(allowedByProcessor[processor] ?? [])]),
    allow(['socket'], [{ index: 0, value: vsockFamily, op: 'SCMP_CMP_NE' }]),
    ...harmlessPersonalities.map((value) => allow(['personality'], [{ index: 0, value, op: 'SCMP_CMP_EQ' }])),
    ...capabilities.flatMap((name) => (allowedByCapability[name] ? [allow(allowedByCapability[name])] : [])),
  ];
  if (!capabilities.includes('CAP_SYS_ADMIN')) {
    rules.push(allow(['clone'], [maskedEqual]));
    // A filter cannot read the flags of clone3, which are in memory. Programs use clone when clone3 fails with ENOSYS.
    rules.push({ names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: notImplemented });
  }
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: notPermitted,
    architectures: architectures[processor] ?? [],
    syscalls: rules,
  };
}

interface ProfileRule {
  readonly name?: string;
  readonly names?: readonly string[];
  readonly includes?: Condition;
  readonly excludes?: Condition;
}

interface Condition {
  readonly caps?: readonly string[];
  readonly arches?: readonly string[];
}

interface ProfileFile {
  readonly archMap?: readonly { readonly architecture: string; readonly subArchitectures?: readonly string[] | null }[];
  readonly architectures?: readonly string[];
  readonly syscalls?: readonly ProfileRule[] | null;
}

/**
 * Reads a profile file. The format is that of the runtime specification, extended as in container engines by conditions
 * for capabilities and architectures.
 */
async function profileOfFile(path: string, capabilities: readonly string[]): Promise<object> {
  let profile: ProfileFile;
  try {
    profile = JSON.parse(await readFile(path, 'utf8')) as ProfileFile;
  } catch (error) {
    throw new RuntimeError('InvalidArgument', `cannot read the seccomp profile "${path}"`, { cause: error });
  }
  const { archMap, syscalls, ...rest } = profile;
  const native = architectures[process.arch] ?? [];
  const mapped = archMap?.find(({ architecture }) => architecture === native[0]);
  const arches = [process.arch === 'x64' ? 'amd64' : process.arch, ...native];
  const isSatisfied = (condition: Condition) =>
    (condition.caps ?? []).every((name) => capabilities.includes(name)) &&
    (condition.arches === undefined ||
      condition.arches.length === 0 ||
      condition.arches.some((name) => arches.includes(name)));
  const isEmpty = (condition: Condition) =>
    (condition.caps ?? []).length === 0 && (condition.arches ?? []).length === 0;
  return {
    ...rest,
    ...(mapped && { architectures: [mapped.architecture, ...(mapped.subArchitectures ?? [])] }),
    syscalls: (syscalls ?? [])
      .filter(
        ({ includes = {}, excludes = {} }) => isSatisfied(includes) && (isEmpty(excludes) || !isSatisfied(excludes)),
      )
      .map(({ name, names, includes: _includes, excludes: _excludes, ...rule }) => ({
        ...rule,
        names: names ?? (name === undefined ? [] : [name]),
      })),
  };
}
