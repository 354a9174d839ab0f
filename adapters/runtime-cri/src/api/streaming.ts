import { flag, integers, text, texts } from '../wire/kinds.ts';
import { at, message } from '../wire/message.ts';

export const ExecRequestMessage = message({
  containerId: at(1, text),
  cmd: at(2, texts),
  tty: at(3, flag),
  stdin: at(4, flag),
  stdout: at(5, flag),
  stderr: at(6, flag),
});
export const AttachRequestMessage = message({
  containerId: at(1, text),
  stdin: at(2, flag),
  tty: at(3, flag),
  stdout: at(4, flag),
  stderr: at(5, flag),
});
export const PortForwardRequestMessage = message({ podSandboxId: at(1, text), port: at(2, integers) });

/** The URL of a stream, which is valid for one connection. */
export const StreamUrlResponse = message({ url: at(1, text) });
