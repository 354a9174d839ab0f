import { RuntimeError } from '@keelson/container-runtime';
import * as arm64 from './arm64.ts';
import { elfMachine, executable } from './machine-code.ts';
import * as x64 from './x64.ts';

/**
 * Two programs that neither a shell nor Node can be, as executables of a few hundred bytes; docs/adr says why they are
 * made here.
 *
 * - `reaper PROGRAM ARGUMENTS...` becomes a subreaper, runs the program with file 3 closed, and writes a line to file
 *   3 for every child that ends, orphans of the program included: 8 hexadecimal digits process id, 8 digits status as
 *   `wait` gives it. It ends with its last child.
 * - `holder` waits for ever, and lets the kernel reap its children: the first process of a process id namespace. With
 *   an argument it ends at once.
 */
export interface NativePrograms {
  readonly reaper: Buffer;
  readonly holder: Buffer;
}

/** @throws `Unsupported` for a processor that there are no programs for */
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
