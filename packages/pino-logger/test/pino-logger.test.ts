import { spawn } from 'node:child_process';
import { once } from 'node:events';
import test from 'ava';
import { createPinoLogger, errorText, type PinoLoggerOptions } from '../src/index.ts';

const failure = Object.assign(new Error('outer', { cause: new Error('inner\nline') }), { code: 'EOUTER' });

function lines(level: 'debug' | 'info' | 'warn' | 'error', options: PinoLoggerOptions = {}) {
  const written: string[] = [];
  const logger = createPinoLogger(level, { ...options, sink: { write: (line) => void written.push(line) } });
  return { logger, parsed: () => written.map((line) => JSON.parse(line) as Record<string, unknown>), written };
}

test('a log line is one JSON object with the name of its level, its time, fields and message', (t) => {
  const { logger, parsed, written } = lines('info');
  logger.child({ component: 'c' }).warn('it failed', { big: 5n });
  t.true(written[0]?.endsWith('}\n'));
  t.deepEqual(Object.keys(parsed()[0] ?? {}), ['level', 'time', 'component', 'big', 'msg']);
  t.like(parsed()[0], { level: 'warn', component: 'c', big: '5', msg: 'it failed' });
  t.regex(String(parsed()[0]?.['time']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
});

test('lines below the level are not written', (t) => {
  const { logger, parsed } = lines('warn');
  logger.debug('a');
  logger.info('b');
  logger.warn('c');
  logger.error('d');
  t.deepEqual(
    parsed().map(({ msg }) => msg),
    ['c', 'd'],
  );
});

test('an error is logged with its stack, or as the messages of its causes', (t) => {
  const complete = lines('info');
  complete.logger.error('failed', { err: failure });
  t.like(complete.parsed()[0]?.['err'], { message: 'outer: inner\nline', code: 'EOUTER' });
  t.regex(JSON.stringify(complete.parsed()), /pino-logger\.test/);
  const short = lines('info', { describe: errorText });
  short.logger.error('failed', { err: failure });
  t.is(short.parsed()[0]?.['err'], 'outer (EOUTER): inner\nline');
});

const entry = new URL('../src/index.js', import.meta.url).href;

test('a process loads pino for its first line, not at its start', async (t) => {
  const script = `import { createRequire } from 'node:module';
    import { createPinoLogger } from ${JSON.stringify(entry)};
    const isLoaded = () => Object.keys(createRequire(import.meta.url).cache).some((path) => /\\bpino\\.js$/.test(path));
    const logger = createPinoLogger('info');
    logger.debug('below the level');
    const before = isLoaded();
    logger.info('first');
    console.log(before, isLoaded());`;
  const child = spawn(process.execPath, ['--conditions=keelson-modules', '--input-type=module', '-e', script]);
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  const [code] = await once(child, 'close');
  t.deepEqual([code, output], [0, 'false true\n']);
});

test('a process whose stderr was closed continues to run', async (t) => {
  const script = `import { createPinoLogger } from ${JSON.stringify(entry)};
    const logger = createPinoLogger('info');
    process.stdin.once('data', () => { for (let i = 0; i < 20; i += 1) logger.info('line ' + i); console.log('runs'); });`;
  const child = spawn(process.execPath, ['--conditions=keelson-modules', '--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  child.stderr.destroy();
  child.stdin.end('go\n');
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  const [code] = await once(child, 'close');
  t.deepEqual([code, output], [0, 'runs\n']);
});
