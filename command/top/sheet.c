/* SPDX-License-Identifier: MIT */
#include "sheet.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool tw_sheet_init(struct tw_sheet *sheet, int rows, int cols, bool ascii)
{
    *sheet = (struct tw_sheet){rows, cols, ascii, malloc((size_t)rows * (size_t)cols * sizeof *sheet->cell)};
    if (sheet->cell == NULL)
        return false;
    for (int row = 0; row < rows; row++)
        tw_sheet_row(sheet, row, TW_STYLE_PLAIN);
    return true;
}

void tw_sheet_fini(struct tw_sheet *sheet)
{
    free(sheet->cell);
    sheet->cell = NULL;
}

static void set(struct tw_sheet *sheet, int row, int col, enum tw_style style, const char *text, size_t size)
{
    if (row < 0 || row >= sheet->rows || col < 0 || col >= sheet->cols)
        return;
    struct tw_cell *cell = &sheet->cell[row * sheet->cols + col];
    memcpy(cell->text, text, size);
    cell->text[size] = '\0';
    cell->style = (uint8_t)style;
}

int tw_sheet_put(struct tw_sheet *sheet, int row, int col, enum tw_style style, const char *format, ...)
{
    char text[512];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    for (const char *at = text; *at != '\0'; at++)
        set(sheet, row, col++, style, at, 1);
    return col;
}

void tw_sheet_block(struct tw_sheet *sheet, int row, int col, enum tw_style style, int eighths)
{
    static const char blocks[][4] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char plain[] = " ..::||##";
    if (sheet->ascii)
        set(sheet, row, col, style, &plain[eighths], 1);
    else
        set(sheet, row, col, style, blocks[eighths], strlen(blocks[eighths]));
}

void tw_sheet_row(struct tw_sheet *sheet, int row, enum tw_style style)
{
    for (int col = 0; col < sheet->cols; col++)
        set(sheet, row, col, style, " ", 1);
}

/* How many of a row's cells come before the blanks at its end. */
static int filled(const struct tw_sheet *sheet, int row)
{
    int end = sheet->cols;
    while (end > 0 && strcmp(sheet->cell[row * sheet->cols + end - 1].text, " ") == 0)
        end--;
    return end;
}

void tw_sheet_print(const struct tw_sheet *sheet, FILE *out)
{
    int rows = sheet->rows;
    while (rows > 0 && filled(sheet, rows - 1) == 0)
        rows--;
    for (int row = 0; row < rows; row++) {
        for (int col = 0; col < filled(sheet, row); col++)
            fputs(sheet->cell[row * sheet->cols + col].text, out);
        fputc('\n', out);
    }
}
