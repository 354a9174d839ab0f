import { open } from 'node:fs/promises';
import type { ContainerStatus } from '@keelson/container-runtime';
import { readLog } from '../../machine/logs/read-log.ts';
import { containerNotesOf } from '../../runtime-view/runtime-labels.ts';

const maxFileBytes = 4096;
const maxLogBytes = 2048;
const maxLogLines = 80;

/** Termination messages of ended containers: see docs/reference/agent-rules.md#termination-messages. */
export class TerminationMessages {
  readonly #known = new Map<string, string>();

  /** Reads the messages of containers that have ended since the last call. */
  async load(containers: readonly ContainerStatus[]): Promise<void> {
    for (const status of containers) {
      if (status.state === 'exited' && !this.#known.has(status.id)) this.#known.set(status.id, await read(status));
    }
  }

  /** Undefined when there is none. */
  of(status: ContainerStatus): string | undefined {
    return this.#known.get(status.id) || undefined;
  }

  forget(containers: readonly ContainerStatus[]): void {
    for (const { id } of containers) this.#known.delete(id);
  }
}

async function read(status: ContainerStatus): Promise<string> {
  const { messageFile, messagePolicy } = containerNotesOf(status.annotations);
  const message = messageFile === undefined ? '' : await tail(messageFile, maxFileBytes);
  const failed = status.exitCode !== 0;
  if (message !== '' || messagePolicy !== 'FallbackToLogsOnError' || !failed || status.logPath === undefined)
    return message;
  return endOfLog(status.logPath).catch(() => '');
}

async function endOfLog(path: string): Promise<string> {
  let text = Buffer.alloc(0);
  for await (const part of readLog(path, { tailLines: maxLogLines }))
    text = Buffer.concat([text, part]).subarray(-maxLogBytes);
  return text.toString('utf8');
}

async function tail(path: string, maxBytes: number): Promise<string> {
  try {
    const file = await open(path, 'r');
    try {
      const { size } = await file.stat();
      const length = Math.min(size, maxBytes);
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
      return buffer.subarray(0, bytesRead).toString('utf8');
    } finally {
      await file.close();
    }
  } catch {
    return '';
  }
}
