import { createPinoLogger, errorText } from '@keelson/pino-logger';
import { superviseOci } from '../supervisor/supervisor-main.ts';

const terminated = new Promise<void>((resolve) => {
  process.once('SIGTERM', () => resolve());
  process.once('SIGINT', () => resolve());
});

process.exitCode = await superviseOci({
  argument: process.argv[2],
  logger: createPinoLogger('info', { describe: errorText }).child({ component: 'supervisor', pid: process.pid }),
  report: (message) => process.send?.(message, undefined, undefined, () => {}),
  terminated,
});
