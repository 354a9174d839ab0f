import { RuntimeError } from '@keelson/container-runtime';
import * as arm64 from './arm64.ts';
import { elfMachine, executable } from './machine-code.ts';
import * as x64 from './x64.ts';

/**
 * Two programs as executables of a few hundred bytes. They use system calls that neither a shell nor Node provides: see
 * docs/adr/0015-oci-pods-use-namespace-files-and-a-small-subreaper.md.
 *
 * - `reaper PROGRAM ARGUMENTS...` becomes a subreaper, runs the program with file descriptor 3 closed, and writes a
 *   line to file descriptor 3 for every child that ends, including orphans of the program: the process ID and the
 *   status of `wait`, both as 8 hexadecimal digits. It ends when it has no children.
 * - `holder` is the first process of a PID namespace: it waits until it is killed, and the kernel reaps its children.
 *   With an argument it ends immediately.
 */
export interface NativePrograms {
  readonly reaper: Buffer;
  readonly holder: Buffer;
}

/** The programs of an architecture. @throws RuntimeError `Unsupported` for an architecture without programs */
export function nativePrograms(architecture: string = process.arch): NativePrograms {
  if (architecture === 'x64')
    return { reaper: executable(elfMachine.x64, x64.reaper), holder: executable(elfMachine.x64, x64.holder) };
  if (architecture === 'arm64')
    return { reaper: executable(elfMachine.arm64, arm64.reaper), holder: executable(elfMachine.arm64, arm64.holder) };
  throw new RuntimeError(
    'Unsupported',
    `the OCI runtime has no helper programs for processors of type ${architecture}`,
  );
}
