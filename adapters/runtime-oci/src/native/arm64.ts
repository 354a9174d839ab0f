import { code } from './machine-code.ts';

/** The reaper of `NativePrograms`, with the system call numbers of this architecture. */
export const reaper = code(`
  f3 03 00 91             ; mov x19, sp
  80 04 80 d2             ; mov x0, #0x24
  21 00 80 d2             ; mov x1, #0x1
  02 00 80 d2             ; mov x2, #0x0
  03 00 80 d2             ; mov x3, #0x0
  04 00 80 d2             ; mov x4, #0x0
  e8 14 80 d2             ; mov x8, #0xa7
  01 00 00 d4             ; svc #0x0
  20 02 80 d2             ; mov x0, #0x11
  01 00 80 d2             ; mov x1, #0x0
  88 1b 80 d2             ; mov x8, #0xdc
  01 00 00 d4             ; svc #0x0
  20 04 00 b4             ; cbz x0, child
  ff c3 00 d1             ; sub sp, sp, #0x30
  ; again:
  00 00 80 92             ; mov x0, #0xffffffffffffffff
  e1 03 00 91             ; mov x1, sp
  02 00 80 d2             ; mov x2, #0x0
  03 00 80 d2             ; mov x3, #0x0
  88 20 80 d2             ; mov x8, #0x104
  01 00 00 d4             ; svc #0x0
  c0 02 f8 b7             ; tbnz x0, #63, done
  e2 03 40 b9             ; ldr w2, [sp]
  42 80 00 aa             ; orr x2, x2, x0, lsl #32
  e3 23 00 91             ; add x3, sp, #0x8
  04 02 80 52             ; mov w4, #0x10
  ; digit:
  42 f0 c2 93             ; ror x2, x2, #60
  45 0c 00 12             ; and w5, w2, #0xf
  a6 c0 00 11             ; add w6, w5, #0x30
  a7 5c 01 11             ; add w7, w5, #0x57
  bf 28 00 71             ; cmp w5, #0xa
  c5 30 87 1a             ; csel w5, w6, w7, cc
  65 14 00 38             ; strb w5, [x3], #1
  84 04 00 71             ; subs w4, w4, #0x1
  01 ff ff 54             ; b.ne digit
  45 01 80 52             ; mov w5, #0xa
  65 00 00 39             ; strb w5, [x3]
  60 00 80 d2             ; mov x0, #0x3
  e1 23 00 91             ; add x1, sp, #0x8
  22 02 80 d2             ; mov x2, #0x11
  08 08 80 d2             ; mov x8, #0x40
  01 00 00 d4             ; svc #0x0
  e5 ff ff 17             ; b again
  ; done:
  00 00 80 d2             ; mov x0, #0x0
  ; exit:
  a8 0b 80 d2             ; mov x8, #0x5d
  01 00 00 d4             ; svc #0x0
  ; child:
  60 00 80 d2             ; mov x0, #0x3
  28 07 80 d2             ; mov x8, #0x39
  01 00 00 d4             ; svc #0x0
  63 02 40 f9             ; ldr x3, [x19]
  61 42 00 91             ; add x1, x19, #0x10
  20 00 40 f9             ; ldr x0, [x1]
  62 0e 03 8b             ; add x2, x19, x3, lsl #3
  42 40 00 91             ; add x2, x2, #0x10
  a8 1b 80 d2             ; mov x8, #0xdd
  01 00 00 d4             ; svc #0x0
  e0 0f 80 d2             ; mov x0, #0x7f
  f3 ff ff 17             ; b exit
`);

/** The holder of `NativePrograms`. */
export const holder = code(`
  e0 03 40 f9             ; ldr x0, [sp]
  1f 04 00 f1             ; cmp x0, #0x1
  81 02 00 54             ; b.ne quit
  ff 83 00 d1             ; sub sp, sp, #0x20
  21 00 80 d2             ; mov x1, #0x1
  42 00 80 d2             ; mov x2, #0x2
  e1 0b 00 a9             ; stp x1, x2, [sp]
  ff 7f 01 a9             ; stp xzr, xzr, [sp, #16]
  20 02 80 d2             ; mov x0, #0x11
  e1 03 00 91             ; mov x1, sp
  02 00 80 d2             ; mov x2, #0x0
  03 01 80 d2             ; mov x3, #0x8
  c8 10 80 d2             ; mov x8, #0x86
  01 00 00 d4             ; svc #0x0
  ; again:
  00 00 80 d2             ; mov x0, #0x0
  01 00 80 d2             ; mov x1, #0x0
  02 00 80 d2             ; mov x2, #0x0
  03 00 80 d2             ; mov x3, #0x0
  04 00 80 d2             ; mov x4, #0x0
  28 09 80 d2             ; mov x8, #0x49
  01 00 00 d4             ; svc #0x0
  f9 ff ff 17             ; b again
  ; quit:
  00 00 80 d2             ; mov x0, #0x0
  a8 0b 80 d2             ; mov x8, #0x5d
  01 00 00 d4             ; svc #0x0
`);
