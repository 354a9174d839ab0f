import { join } from 'node:path';
import { attachStreams, terminalResizer } from '@keelson/container-monitor';
import type { ExecRequest, ProcessStreams, StreamRequest } from '@keelson/container-runtime';
import type { OciContainer } from '../container/oci-container.ts';
import type { OciContext } from '../container/oci-context.ts';
import { startProcess } from './oci-process.ts';

/** A command in the container with its ends in the caller's hands. @throws `StartFailed`, `InvalidArgument` */
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

/** The container's own ends, with the size of its terminal if it has one. */
export async function attach(
  around: OciContext,
  container: OciContainer,
  request: StreamRequest,
): Promise<ProcessStreams> {
  const streams = await attachStreams(container, around, request);
  if (!container.record.config.tty) return streams;
  return { ...streams, resize: terminalResizer(join(container.folder, 'terminal')) };
}
