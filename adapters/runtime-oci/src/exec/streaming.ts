import { join } from 'node:path';
import { attachStreams, terminalResizer } from '@keelson/container-monitor';
import type { ExecRequest, ProcessStreams, StreamRequest } from '@keelson/container-runtime';
import type { OciContainer } from '../container/oci-container.ts';
import type { OciContext } from '../container/oci-context.ts';
import { startProcess } from './oci-process.ts';

/** Runs a command in the container and returns its streams. @throws RuntimeError `StartFailed`, `InvalidArgument` */
export async function execStreams(
  around: OciContext,
  container: OciContainer,
  request: ExecRequest,
): Promise<ProcessStreams> {
  const { stdin, stdout, stderr, ended, kill, resize } = await startProcess(around, container, request);
  stdin?.on('error', () => {}); // the command may end before it has read everything
  return {
    ...(stdin !== null && { stdin }),
    ...(stdout !== null && { stdout }),
    ...(stderr !== null && { stderr }),
    ...(resize && { resize }),
    ended: ended.then((exitCode) => ({ exitCode })),
    close: () => {
      kill();
      stdin?.destroy();
      stdout?.destroy();
      stderr?.destroy();
    },
  };
}

/** Attaches to the streams of the container. Its terminal, if it has one, can be resized. */
export async function attach(
  around: OciContext,
  container: OciContainer,
  request: StreamRequest,
): Promise<ProcessStreams> {
  const streams = await attachStreams(container, around, request);
  if (!container.record.config.tty) return streams;
  return { ...streams, resize: terminalResizer(join(container.folder, 'terminal')) };
}
