import type { ContainerId, ExecSyncRequest, ExecSyncResult } from '@keelson/container-runtime';
import { Calls } from './api/calls.ts';
import type { CriConnection } from './connection/cri-connection.ts';

const defaultMaxOutputBytes = 16 * 1024 * 1024;

/** Runs a command by ExecSync. The daemon enforces the timeout, which is rounded up to whole seconds. */
export async function execSync(
  connection: CriConnection,
  containerId: ContainerId,
  request: ExecSyncRequest,
  signal?: AbortSignal,
): Promise<ExecSyncResult> {
  const { command, execTimeoutMs = 0, maxOutputBytes = defaultMaxOutputBytes } = request;
  const timeout = Math.ceil(execTimeoutMs / 1000);
  const reply = await connection.call(Calls.execSync, { containerId, cmd: command, timeout }, signal);
  const { stdout = Buffer.alloc(0), stderr = Buffer.alloc(0), exitCode = 0 } = reply;
  return { stdout: stdout.subarray(0, maxOutputBytes), stderr: stderr.subarray(0, maxOutputBytes), exitCode };
}
