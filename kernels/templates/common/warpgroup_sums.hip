// Names of the operands of an instruction of a warpgroup that hold its sums, 4, 8, ... 128 of them,
// and these operands.
//
//   GRETA_NAMES_n           "%0, %1, ...": the first n operands
//   GRETA_SUMS_n(x, s)      x(...) of the first n sums of `s`, in fours
#pragma once

#define GRETA_NAMES_4 "%0, %1, %2, %3"
#define GRETA_NAMES_8 GRETA_NAMES_4 ", %4, %5, %6, %7"
#define GRETA_NAMES_12 GRETA_NAMES_8 ", %8, %9, %10, %11"
#define GRETA_NAMES_16 GRETA_NAMES_12 ", %12, %13, %14, %15"
#define GRETA_NAMES_20 GRETA_NAMES_16 ", %16, %17, %18, %19"
#define GRETA_NAMES_24 GRETA_NAMES_20 ", %20, %21, %22, %23"
#define GRETA_NAMES_28 GRETA_NAMES_24 ", %24, %25, %26, %27"
#define GRETA_NAMES_32 GRETA_NAMES_28 ", %28, %29, %30, %31"
#define GRETA_NAMES_36 GRETA_NAMES_32 ", %32, %33, %34, %35"
#define GRETA_NAMES_40 GRETA_NAMES_36 ", %36, %37, %38, %39"
#define GRETA_NAMES_44 GRETA_NAMES_40 ", %40, %41, %42, %43"
#define GRETA_NAMES_48 GRETA_NAMES_44 ", %44, %45, %46, %47"
#define GRETA_NAMES_52 GRETA_NAMES_48 ", %48, %49, %50, %51"
#define GRETA_NAMES_56 GRETA_NAMES_52 ", %52, %53, %54, %55"
#define GRETA_NAMES_60 GRETA_NAMES_56 ", %56, %57, %58, %59"
#define GRETA_NAMES_64 GRETA_NAMES_60 ", %60, %61, %62, %63"
#define GRETA_NAMES_68 GRETA_NAMES_64 ", %64, %65, %66, %67"
#define GRETA_NAMES_72 GRETA_NAMES_68 ", %68, %69, %70, %71"
#define GRETA_NAMES_76 GRETA_NAMES_72 ", %72, %73, %74, %75"
#define GRETA_NAMES_80 GRETA_NAMES_76 ", %76, %77, %78, %79"
#define GRETA_NAMES_84 GRETA_NAMES_80 ", %80, %81, %82, %83"
#define GRETA_NAMES_88 GRETA_NAMES_84 ", %84, %85, %86, %87"
#define GRETA_NAMES_92 GRETA_NAMES_88 ", %88, %89, %90, %91"
#define GRETA_NAMES_96 GRETA_NAMES_92 ", %92, %93, %94, %95"
#define GRETA_NAMES_100 GRETA_NAMES_96 ", %96, %97, %98, %99"
#define GRETA_NAMES_104 GRETA_NAMES_100 ", %100, %101, %102, %103"
#define GRETA_NAMES_108 GRETA_NAMES_104 ", %104, %105, %106, %107"
#define GRETA_NAMES_112 GRETA_NAMES_108 ", %108, %109, %110, %111"
#define GRETA_NAMES_116 GRETA_NAMES_112 ", %112, %113, %114, %115"
#define GRETA_NAMES_120 GRETA_NAMES_116 ", %116, %117, %118, %119"
#define GRETA_NAMES_124 GRETA_NAMES_120 ", %120, %121, %122, %123"
#define GRETA_NAMES_128 GRETA_NAMES_124 ", %124, %125, %126, %127"

#define GRETA_FOUR(x, s, c) x(s[c][0]), x(s[c][1]), x(s[c][2]), x(s[c][3])
#define GRETA_SUMS_4(x, s) GRETA_FOUR(x, s, 0)
#define GRETA_SUMS_8(x, s) GRETA_SUMS_4(x, s), GRETA_FOUR(x, s, 1)
#define GRETA_SUMS_12(x, s) GRETA_SUMS_8(x, s), GRETA_FOUR(x, s, 2)
#define GRETA_SUMS_16(x, s) GRETA_SUMS_12(x, s), GRETA_FOUR(x, s, 3)
#define GRETA_SUMS_20(x, s) GRETA_SUMS_16(x, s), GRETA_FOUR(x, s, 4)
#define GRETA_SUMS_24(x, s) GRETA_SUMS_20(x, s), GRETA_FOUR(x, s, 5)
#define GRETA_SUMS_28(x, s) GRETA_SUMS_24(x, s), GRETA_FOUR(x, s, 6)
#define GRETA_SUMS_32(x, s) GRETA_SUMS_28(x, s), GRETA_FOUR(x, s, 7)
#define GRETA_SUMS_36(x, s) GRETA_SUMS_32(x, s), GRETA_FOUR(x, s, 8)
#define GRETA_SUMS_40(x, s) GRETA_SUMS_36(x, s), GRETA_FOUR(x, s, 9)
#define GRETA_SUMS_44(x, s) GRETA_SUMS_40(x, s), GRETA_FOUR(x, s, 10)
#define GRETA_SUMS_48(x, s) GRETA_SUMS_44(x, s), GRETA_FOUR(x, s, 11)
#define GRETA_SUMS_52(x, s) GRETA_SUMS_48(x, s), GRETA_FOUR(x, s, 12)
#define GRETA_SUMS_56(x, s) GRETA_SUMS_52(x, s), GRETA_FOUR(x, s, 13)
#define GRETA_SUMS_60(x, s) GRETA_SUMS_56(x, s), GRETA_FOUR(x, s, 14)
#define GRETA_SUMS_64(x, s) GRETA_SUMS_60(x, s), GRETA_FOUR(x, s, 15)
#define GRETA_SUMS_68(x, s) GRETA_SUMS_64(x, s), GRETA_FOUR(x, s, 16)
#define GRETA_SUMS_72(x, s) GRETA_SUMS_68(x, s), GRETA_FOUR(x, s, 17)
#define GRETA_SUMS_76(x, s) GRETA_SUMS_72(x, s), GRETA_FOUR(x, s, 18)
#define GRETA_SUMS_80(x, s) GRETA_SUMS_76(x, s), GRETA_FOUR(x, s, 19)
#define GRETA_SUMS_84(x, s) GRETA_SUMS_80(x, s), GRETA_FOUR(x, s, 20)
#define GRETA_SUMS_88(x, s) GRETA_SUMS_84(x, s), GRETA_FOUR(x, s, 21)
#define GRETA_SUMS_92(x, s) GRETA_SUMS_88(x, s), GRETA_FOUR(x, s, 22)
#define GRETA_SUMS_96(x, s) GRETA_SUMS_92(x, s), GRETA_FOUR(x, s, 23)
#define GRETA_SUMS_100(x, s) GRETA_SUMS_96(x, s), GRETA_FOUR(x, s, 24)
#define GRETA_SUMS_104(x, s) GRETA_SUMS_100(x, s), GRETA_FOUR(x, s, 25)
#define GRETA_SUMS_108(x, s) GRETA_SUMS_104(x, s), GRETA_FOUR(x, s, 26)
#define GRETA_SUMS_112(x, s) GRETA_SUMS_108(x, s), GRETA_FOUR(x, s, 27)
#define GRETA_SUMS_116(x, s) GRETA_SUMS_112(x, s), GRETA_FOUR(x, s, 28)
#define GRETA_SUMS_120(x, s) GRETA_SUMS_116(x, s), GRETA_FOUR(x, s, 29)
#define GRETA_SUMS_124(x, s) GRETA_SUMS_120(x, s), GRETA_FOUR(x, s, 30)
#define GRETA_SUMS_128(x, s) GRETA_SUMS_124(x, s), GRETA_FOUR(x, s, 31)

#define GRETA_FLOAT(x) "+f"(x)
#define GRETA_INTEGER(x) "+r"(x)
